"""The groups of the admin's models: what people look for first, what Izzy keeps for itself last."""

from typing import Any

from django.urls import reverse_lazy

GROUPS: dict[str, dict[str, str]] = {
    "People": {
        "accounts.user": "person",
        "accounts.preferences": "tune",
        "accounts.apitoken": "key",
        "accounts.secret": "lock",
    },
    "Memory": {
        "memory.memory": "bookmark",
        "memory.memoryfile": "description",
        "memory.purgereceipt": "receipt_long",
        "memory.import": "upload",
        "memory.capturewindow": "hearing",
    },
    "Conversations": {
        "chat.conversation": "chat",
        "chat.message": "notes",
        "agent.toolcall": "build",
        "agent.modelcall": "payments",
    },
    "Capabilities": {
        "capabilities.capability": "handyman",
        "capabilities.capabilityversion": "history",
        "capabilities.execution": "play_arrow",
        "builder.build": "construction",
    },
    "Programs": {
        "gateway.clientsession": "terminal",
        "gateway.waitingcall": "pan_tool",
        "gateway.proxyspending": "savings",
        "agent.toolgrant": "verified_user",
    },
    "Upkeep": {"core.integrityrun": "fact_check"},
}


def navigation(site: Any) -> list[dict[str, Any]]:
    """The sidebar of unfold: the groups, and in the last, folded one every other model of the site."""
    names = {model._meta.label_lower: str(model._meta.verbose_name_plural) for model in site._registry}
    known = {label for group in GROUPS.values() for label in group}
    internals = dict.fromkeys(sorted(names.keys() - known, key=names.__getitem__), "data_object")
    back = {
        "title": "Back to Izzy",
        "icon": "arrow_back",
        "link": reverse_lazy("chat:home"),
        "active": lambda request: False,  # every address begins with this one
    }
    index = {"title": "Overview", "icon": "dashboard", "link": reverse_lazy("admin:index")}
    return [
        {"items": [back, index]},
        *(
            {
                "title": title,
                "collapsible": title == "Internals",
                "items": [_item(label, icon, names) for label, icon in group.items() if label in names],
            }
            for title, group in (*GROUPS.items(), ("Internals", internals))
        ),
    ]


def _item(label: str, icon: str, names: dict[str, str]) -> dict[str, Any]:
    link = reverse_lazy(f"admin:{label.replace('.', '_')}_changelist")
    title = names[label]
    return {"title": title[:1].upper() + title[1:], "icon": icon, "link": link}
