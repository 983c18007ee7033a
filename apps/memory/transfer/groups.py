"""The records of memory, as an export has them and as other programs' files give them."""

from apps.core.transfer import RecordGroup, record_groups
from apps.memory.models import Memory, MemoryEdge, MemoryFile, MemoryUse

from .documents import file_documents, note_documents
from .file_records import file_rows, files_plan
from .linked_records import edge_rows, edges_plan, handle_rows, handles_plan, use_rows, uses_plan
from .note_records import note_rows
from .note_taking import notes_plan, notes_settle


def register() -> None:
    """Called once, when the apps are ready."""
    record_groups.register(
        "notes",
        RecordGroup(
            rank=10,
            kinds=("decay", "note", "revision"),
            heads=("decay", "note"),
            whole=True,
            plan=notes_plan,
            rows=note_rows,
            documents=note_documents,
            tables={"note": Memory},
            settle=notes_settle,
        ),
    )
    record_groups.register(
        "edges",
        RecordGroup(
            rank=11, kinds=("edge",), plan=edges_plan, rows=edge_rows, tables={"edge": MemoryEdge}
        ),
    )
    record_groups.register(
        "files",
        RecordGroup(
            rank=20,
            kinds=("file", "file_revision"),
            heads=("file",),
            whole=True,
            plan=files_plan,
            rows=file_rows,
            documents=file_documents,
            tables={"file": MemoryFile},
        ),
    )
    record_groups.register(
        "handles", RecordGroup(rank=60, kinds=("handle",), plan=handles_plan, rows=handle_rows)
    )
    record_groups.register(
        "uses",
        RecordGroup(rank=61, kinds=("use",), plan=uses_plan, rows=use_rows, tables={"use": MemoryUse}),
    )
    record_groups.register(
        "foreign notes", RecordGroup(rank=12, kinds=("foreign_note",), plan=notes_plan)
    )
    record_groups.register(
        "foreign edges", RecordGroup(rank=13, kinds=("foreign_edge",), plan=edges_plan)
    )
    record_groups.register(
        "foreign files", RecordGroup(rank=21, kinds=("foreign_file",), plan=files_plan)
    )
