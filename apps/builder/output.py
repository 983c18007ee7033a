"""Builds as JSON for programs and for the page."""

from typing import Any

from .limits import held_up
from .models import Build
from .selectors import (
    build_later,
    build_seconds,
    build_usage,
    message_json,
    messages_after,
    open_questions,
    secrets_wanted,
    transcript,
)


def build_json(build: Build) -> dict[str, Any]:
    """A build as a line of a list."""
    return {
        "id": str(build.pk),
        "name": build.name,
        "capability": str(build.capability_id),
        "kind": build.kind,
        "state": build.state,
        "description": build.description,
        "request": build.request,
        "feedback": build.feedback,
        "error": {"code": build.error_code, "message": build.reason} if build.error_code else None,
        "version": build.version,
        "hosts": build.hosts,
        "secrets": sorted(build.secrets),
        "conversation": str(build.conversation_id) if build.conversation_id else None,
        "turn": str(build.turn_id) if build.turn_id else None,
        "created_at": build.created_at.isoformat(),
        "started_at": build.started_at.isoformat() if build.started_at else None,
        "ended_at": build.ended_at.isoformat() if build.ended_at else None,
    }


def build_detail_json(build: Build, *, brief: bool = False) -> dict[str, Any]:
    """The build with its messages, what is asked, what it cost and, unless `brief`, the transcript."""
    usage = build_usage(build)
    seconds = build_seconds(build)
    return build_json(build) | {
        "input_schema": build.input_schema,
        "messages": [message_json(message) for message in messages_after(build)],
        "questions": [str(message.pk) for message in open_questions(build)],
        "missing_secrets": secrets_wanted(build),
        "held_up": held_up(build),
        "later": build_later(build),
        "rounds": [
            {
                "round": step.round,
                "text": step.text,
                "tool_calls": [
                    {
                        "id": str(call.pk),
                        "name": call.name,
                        "input": call.input,
                        "result": call.result,
                        "is_error": call.is_error,
                        "state": call.state,
                        "duration_ms": call.duration_ms,
                    }
                    for call in step.calls
                ],
            }
            for step in ([] if brief else transcript(build))
        ],
        "usage": {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "cost_usd": round(usage.cost_usd, 6),
        },
        "duration_ms": None if seconds is None else round(seconds * 1000),
    }
