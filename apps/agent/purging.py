"""Tool calls stand for the notes that they were given or answered."""

from apps.agent.models import ToolCall
from apps.core.purging.places import PurgePart
from apps.core.purging.trace import Trace


def calls_of(trace: Trace) -> set[str]:
    """The ids of the tool calls that were given a purged row's id or answered it: ours and the model's."""
    rows = ToolCall.objects.for_user(trace.user_id).values_list("pk", "tool_use_id", "input", "result")
    return {
        name
        for pk, tool_use_id, given, result in rows.iterator(chunk_size=500)
        if trace.names_row(result) or trace.names_row(str(given))
        for name in (str(pk), tool_use_id)
        if name
    }


PURGING = PurgePart(related=calls_of)
