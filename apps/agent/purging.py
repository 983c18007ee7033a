"""Where the agent keeps words of notes: the rows of tool calls."""

from apps.agent.models import ToolCall
from apps.core.purging.places import Hits, Place
from apps.core.purging.trace import Trace, redact_text, redact_value
from apps.core.registries import purge_places

PLACE = "agent.tool_calls"
_COLUMNS = (
    "agent.toolcall.input",
    "agent.toolcall.result",
    "agent.toolcall.answer",
    "agent.toolcall.tool_use_id",
)


def register_places() -> None:
    purge_places.register(
        PLACE,
        Place(
            label="Tool calls: what was asked and answered",
            columns=_COLUMNS,
            expand=calls_of,
            clear=tool_calls_clear,
        ),
    )


def calls_of(trace: Trace) -> set[str]:
    """The ids of the tool calls that were given a purged row's id or answered it: ours and the model's."""
    found: set[str] = set()
    rows = ToolCall.objects.for_user(trace.user_id).values_list("pk", "tool_use_id", "input", "result")
    for pk, tool_use_id, given, result in rows.iterator(chunk_size=500):
        if trace.names_row(result) or trace.names_row(str(given)):
            found |= {str(pk), tool_use_id}
    return found - {""}


def tool_calls_clear(trace: Trace, hits: Hits) -> int:
    """Input, result and answer lose what quotes the purged rows; a call about one of them loses all of its words."""
    keys = {key for name in _COLUMNS for key in hits.get(name, ())}
    keys |= set(
        ToolCall.objects.for_user(trace.user_id).filter(pk__in=_own_ids(trace)).values_list("pk", flat=True)
    )
    changed = 0
    for call in ToolCall.objects.for_user(trace.user_id).filter(pk__in=keys).select_for_update():
        about = str(call.pk) in trace.related
        before = (call.input, call.result, call.answer)
        call.input = redact_value(call.input, trace, strict=about)
        call.result = redact_text(call.result, trace, strict=about)
        call.answer = redact_text(call.answer, trace)
        if before != (call.input, call.result, call.answer):
            call.save(update_fields=["input", "result", "answer"])
            changed += 1
    return changed


def _own_ids(trace: Trace) -> list[str]:
    return [name for name in trace.related if len(name) == 36]
