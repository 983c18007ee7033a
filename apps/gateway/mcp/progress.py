"""The progress that tools report, as one line for the people behind an MCP client."""

import json
from typing import Any

from apps.core.text import truncated

MAX_CHARS = 300


def progress_text(data: dict[str, Any]) -> str:
    """`Searching: coffee; tea`, `Found 3`, or what a capability printed; other data as JSON."""
    status, rest = str(data.get("status", "")), {k: v for k, v in data.items() if k != "status"}
    if status == "output":
        return truncated(str(data.get("text", "")).strip(), MAX_CHARS)
    if status == "found":
        return f"Found {data.get('count', 0)}"
    if status == "queued":
        return f"Waiting for a sandbox, {data.get('ahead', 0)} before this"
    words = status.replace("_", " ").capitalize()
    if isinstance(searches := data.get("searches"), list):
        return truncated(
            f"{words}: {'; '.join(' '.join(map(str, each)) for each in searches)}", MAX_CHARS
        )
    if isinstance(query := data.get("query"), str):
        return truncated(f"{words}: {query}", MAX_CHARS)
    more = json.dumps(rest, ensure_ascii=False, default=str) if rest else ""
    return truncated(" ".join(filter(None, [words, more])), MAX_CHARS)
