"""Results of the sandbox as the text that the builder's model reads."""

from apps.capabilities.sandbox.base import CodeResult, CommandResult

OUTPUT_CHARS = 8_000
ERROR_CHARS = 4_000


def code_text(result: CodeResult) -> str:
    """Output, the value of the last expression, and what was raised."""
    parts = [_part("stdout", result.stdout), _part("stderr", result.stderr)]
    if result.value:
        parts.append(_part("value", result.value))
    if result.error is not None:
        parts.append(f"{result.error.code}: {ends(result.error.message, ERROR_CHARS)}")
    return _joined(parts) or "Done, without output."


def command_text(result: CommandResult) -> str:
    """The exit code with the output."""
    parts = [f"exit code {result.exit_code}", _part("stdout", result.stdout), _part("stderr", result.stderr)]
    if result.error is not None:
        parts.append(f"{result.error.code}: {result.error.message}")
    return _joined(parts)


def ends(text: str, limit: int) -> str:
    """Beginning and end of a long text: an error stands at the end, what led to it at the beginning."""
    if len(text) <= limit:
        return text
    head, tail = limit // 3, limit - limit // 3
    return f"{text[:head]}\n[… {len(text) - limit:,} characters left out …]\n{text[-tail:]}"


def _part(name: str, text: str) -> str:
    return f"{name}:\n{ends(text.rstrip(), OUTPUT_CHARS)}" if text.strip() else ""


def _joined(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part)
