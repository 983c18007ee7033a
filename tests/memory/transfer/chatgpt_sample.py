"""A ChatGPT export as ChatGPT writes it, made in code."""

from typing import Any

T = 1_765_671_573.68


def node(
    key: str,
    parent: str | None,
    role: str = "user",
    text: object = "",
    *,
    recipient: str = "all",
    content_type: str = "text",
    content: dict[str, Any] | None = None,
    hidden: bool = False,
    at: object = T,
    **more: object,
) -> dict[str, Any]:
    """A node of `mapping`; its children are filled in by `tree`."""
    parts = text if isinstance(text, list) else [text]
    metadata: dict[str, Any] = {"citations": [], "content_references": [], "model_slug": "gpt-5-2"}
    if hidden:
        metadata["is_visually_hidden_from_conversation"] = True
    return {
        "id": key,
        "message": {
            "id": key,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": at,
            "update_time": None,
            "content": content or {"content_type": content_type, "parts": parts},
            "status": "finished_successfully",
            "end_turn": role == "assistant",
            "weight": 1.0,
            "metadata": metadata,
            "recipient": recipient,
            "channel": None,
            **more,
        },
        "parent": parent,
        "children": [],
    }


def tree(*nodes: dict[str, Any]) -> dict[str, Any]:
    root: dict[str, Any] = {"id": "client-created-root", "message": None, "parent": None, "children": []}
    mapping = {each["id"]: each for each in [root, *nodes]}
    for each in nodes:
        if each["parent"] in mapping:
            mapping[each["parent"]]["children"].append(each["id"])
    return mapping


def chat(
    key: str, title: str | None, mapping: dict[str, Any], current: str | None, **more: object
) -> dict[str, Any]:
    return {
        "title": title,
        "create_time": T,
        "update_time": T + 60,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current,
        "plugin_ids": None,
        "conversation_id": key,
        "conversation_template_id": None,
        "gizmo_id": None,
        "is_archived": False,
        "safe_urls": [],
        "is_do_not_remember": False,
        "memory_scope": "global_enabled",
        "id": key,
        **more,
    }


ROOT = "client-created-root"
TALK = chat(
    "693dfd6c-7d34-8321-8f28-3a1a4a5b6c7d",
    "旅行计划",
    tree(
        node("s1", ROOT, "system", "", hidden=True),
        node("ctx", "s1", "user", content={"content_type": "user_editable_context", "user_profile": "I am Ada", "user_instructions": ""}),
        node("u1", "ctx", "user", "我下周去大阪 🎌"),
        node("a-old", "u1", "assistant", "A regenerated answer"),
        node("th", "u1", "assistant", content={"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}),
        node("rr", "th", "assistant", content={"content_type": "reasoning_recap", "content": "Thought for 8s"}),
        node("br", "rr", "assistant", "search('osaka')", recipient="browser.search"),
        node("code", "br", "assistant", recipient="python", content={"content_type": "code", "language": "python", "text": "1+1"}),
        node("out", "code", "tool", content={"content_type": "execution_output", "text": "2"}, recipient="assistant"),
        node("bio", "out", "assistant", "User travels to Osaka next week.", recipient="bio"),
        node("ack", "bio", "tool", "Model set context updated.", recipient="assistant"),
        node("a1", "ack", "assistant", "大阪很好！\ue200cite\ue202turn0search1\ue201 See \ue200entity\ue202[\"city\",\"Osaka\",\"\"]\ue201【4†source】"),
        node(
            "u2",
            "a1",
            "user",
            [{"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1"}, "Et ce temple ?"],
            content_type="multimodal_text",
        ),
        node(
            "u3", "u2", "user",
            [{"content_type": "audio_transcription", "text": "and the food?", "direction": "in"}, {"content_type": "audio_asset_pointer"}],
            content_type="multimodal_text",
        ),
        node("hid", "u3", "user", "hidden prompt", hidden=True),
        node("a2", "hid", "assistant", "C'est Shitennō-ji.", at=None),
    ),
    "a2",
)  # fmt: skip
