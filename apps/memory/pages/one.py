"""A note's own page: what it says, where it is from, when it came up, what it was, what it hangs together with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.errors import REFUSALS, IzzyError
from apps.core.purging.trace import SourceText, purge_parts
from apps.core.registries import owners
from apps.core.text import fold
from apps.memory.models import PRIORITY_FLOOR, Memory, MemoryFile, MemoryUse, Status
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.history import steps_of
from apps.memory.notes.review import note_approve
from apps.memory.notes.selectors import (
    current_cycle,
    memory_get,
    note_kept,
    note_uses,
    open_contradictions,
    versions_of_note,
)
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.notes.uses import KEPT, note_opened
from apps.search.documents import Scope, Source
from apps.search.selectors import similar

from .done import done_last, done_next, named, own_note, version_asked, with_steps
from .forms import NoteForm, ValidForm
from .graph import around

VERSIONS_SHOWN = 10
FILES_SHOWN = 5
FILES_LOOKED_AT = 10
REPLACED_SHOWN = 20
LOOKED_FOR_CHARS = 1000
"""As much of a note's text is looked for among the files."""


@dataclass(frozen=True, slots=True)
class Use:
    """A time that the note came up, and the message beside which it did, where that is there still."""

    row: MemoryUse
    message: SourceText | None
    conversation: bool


@require_GET
@own_note
def note(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """The page; `?edit` with the form in the place of the text, `?history=all` with every version that is kept."""
    editing = "edit" in request.GET
    found = note_kept(request.user.pk, memory_id)
    form = NoteForm.of(found) if editing and found.status != Status.DELETED else None
    return note_page(request, found, form=form)


@require_POST
@own_note
def opened(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Counts that the page was opened. The page says so itself, once it is there: looking at it waits for nobody who writes."""
    note_kept(request.user.pk, memory_id)
    note_opened(user_id=request.user.pk, memory_id=memory_id)
    return HttpResponse(status=204)


def note_page(
    request: SignedInRequest,
    note: Memory,
    *,
    form: NoteForm | None = None,
    valid: ValidForm | None = None,
    problem: str = "",
) -> HttpResponse:
    """The page with a form that has mistakes, or what could not be done (422)."""
    user_id = request.user.pk
    newest = None if request.GET.get("history") == "all" else VERSIONS_SHOWN
    cycle = current_cycle(user_id)
    versions = versions_of_note(note, cycle=cycle, newest=newest)
    uses = list(note_uses(user_id, note.pk)[:KEPT])
    messages = _messages(user_id, [note.source_message_id, *(use.message_id for use in uses)])
    deleted = note.status == Status.DELETED
    wrong = bool(problem or (form and form.errors) or (valid and valid.errors))
    context = {
        "nav": "memory",
        "note": note,
        "form": form,
        "valid": valid or ValidForm.of(note),
        "problem": problem,
        "curve": curve_of(note, cycle),
        "source": messages.get(note.source_message_id) if note.source_message_id else None,
        "source_conversation": _there(user_id, note.source_conversation_id),
        "uses": _uses(user_id, uses, messages),
        "steps": steps_of(versions, addressed) if versions else [],
        "more_versions": newest is not None and versions[-1].version > 1,
        "contradictions": [] if deleted else list(open_contradictions(user_id, of=[note.pk])),
        "replaces": list(
            Memory.objects.owned_by(user_id)
            .filter(superseded_by=note.pk)
            .order_by("-updated_at")[:REPLACED_SHOWN]
        ),
        "files": [] if deleted else _files(user_id, note),
        **({} if deleted else around(user_id, note)),
        **done_last(request),
    }
    return render(request, "memory/one/page.html", context, status=422 if wrong else 200)


def _messages(user_id: UUID, ids: Sequence[UUID | None]) -> Mapping[UUID, SourceText]:
    """The messages among these that are there still, by their ids."""
    wanted = set(filter(None, ids))
    if not wanted:
        return {}
    found = (part.messages(user_id, wanted) for part in purge_parts.values() if part.messages)
    return {text.id: text for texts in found for text in texts}


def _there(user_id: UUID, conversation_id: UUID | None) -> bool:
    return conversation_id is not None and owners["conversation"](user_id, conversation_id)


def _uses(user_id: UUID, rows: Sequence[MemoryUse], messages: Mapping[UUID, SourceText]) -> list[Use]:
    found = [(row, messages.get(row.message_id) if row.message_id else None) for row in rows]
    others = {row.conversation_id for row, message in found if message is None and row.conversation_id}
    there = {key for key in others if key and _there(user_id, key)}
    return [Use(row, message, row.conversation_id in there) for row, message in found]


def _files(user_id: UUID, note: Memory) -> list[MemoryFile]:
    """The files in which the note's text stands, word for word."""
    scope = Scope(sources=frozenset({Source.FILE}))
    near = similar(user_id, note.content[:LOOKED_FOR_CHARS], top_k=FILES_LOOKED_AT, scope=scope)
    rows = MemoryFile.objects.owned_by(user_id).in_bulk([key for key, _ in near]) if near else {}
    said = " ".join(fold(note.content).split())
    files = (rows[key] for key, _ in near if key in rows)
    return [file for file in files if said in " ".join(fold(file.content).split())][:FILES_SHOWN]


@require_POST
@own_note
def save(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Save what was entered of a note; 422 and the page with the form where that has mistakes."""
    note = memory_get(request.user.pk, memory_id)
    form = NoteForm.of(note, request.POST)
    return _changed(request, note, form, "Saved.", partial(note_page, form=form))


@require_POST
@own_note
def valid(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Set since when and until when a note holds."""
    note = note_kept(request.user.pk, memory_id)
    form = ValidForm.of(note, request.POST)
    return _changed(request, note, form, "Changed when it holds.", partial(note_page, valid=form))


def _changed(
    request: SignedInRequest,
    note: Memory,
    form: NoteForm | ValidForm,
    said: str,
    page: Callable[[SignedInRequest, Memory], HttpResponse],
) -> HttpResponse:
    """Changes what was entered; the page with the form where that has mistakes or is refused."""

    def change() -> HttpResponse:
        work = partial(memory_update, user_id=request.user.pk, memory_id=note.pk, **form.changes())
        return _done(request, note.pk, work, said)

    return form.made if form.accepted(change, REFUSALS) else page(request, note)


ACTS: dict[str, tuple[Callable[..., Memory], str]] = {
    "approve": (note_approve, "Approved {}."),
    "archive": (memory_archive, "Archived {}."),
    "delete": (memory_delete, "Deleted {}. It can be brought back for 30 days."),
    "restore": (memory_restore, "Brought back {}."),
}


@require_POST
@own_note
def act(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """`do` is one of ACTS, or `undo` with a `version`; back to the page, which says what was done and offers to undo it."""
    user_id, wanted = request.user.pk, request.POST.get("do", "")
    note = note_kept(user_id, memory_id)
    if wanted == "undo":
        version = version_asked(request)
        work, words = partial(memory_undo, version=version), f"Went back to version {version}."
    elif wanted in ACTS:
        work, words = ACTS[wanted]  # type: ignore[assignment]
    else:
        return note_page(request, note, problem="Choose what to do with the memory.")
    try:
        change = partial(work, user_id=user_id, memory_id=memory_id)
        return _done(request, memory_id, change, words.format(named(user_id, [memory_id])))
    except IzzyError as error:
        return note_page(request, note, problem=error.message)


def _done(
    request: SignedInRequest, memory_id: UUID, work: Callable[[], Memory], said: str
) -> HttpResponse:
    _, steps = with_steps(request.user.pk, [memory_id], work)
    done_next(request, said if steps else "Nothing differs from what it was.", steps)
    return redirect("memory:note", memory_id=memory_id)


WIDTH, HEIGHT = 320, 104
LEFT, TOP, BOTTOM = 4, 8, 8
LEAST_TURNS = 20
"""The curve reaches at least so far ahead."""
FLAT = 1e-9


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in a picture of WIDTH x HEIGHT; `past` ends where `ahead` begins, at present."""

    past: str
    ahead: str
    x: float
    y: float
    floor: float
    turns: int  # since the priority was written
    fades_in: int | None  # turns until it counts as faded; 0: it does, None: never

    width: int = WIDTH
    height: int = HEIGHT


def curve_of(note: Memory, cycle: int) -> Curve:
    """The curve of a note at the user's decay cycle. Unless it is changed it falls evenly to nothing."""
    passed = max(cycle - note.priority_cycle, 0)
    rate = note.decay_rate if note.decay_rate > FLAT else 0.0
    ends = note.priority / rate if rate else 0.0
    span = max(ends * 1.06, passed * 1.1, passed + LEAST_TURNS)
    if not rate:
        fades_in = None if note.priority >= PRIORITY_FLOOR else 0
    else:
        fades_in = max(ceil((note.priority - PRIORITY_FLOOR) / rate + FLAT) - passed, 0)

    def at(turn: float) -> tuple[float, float]:
        value = max(0.0, note.priority - rate * turn)
        x = LEFT + turn / span * (WIDTH - 2 * LEFT)
        return round(x, 1), round(_height(value), 1)

    corner = [ends] if rate else []
    past = [at(0), *(at(turn) for turn in corner if turn < passed), at(passed)]
    ahead = [at(passed), *(at(turn) for turn in corner if turn > passed), at(span)]
    x, y = at(passed)
    return Curve(
        _points(past), _points(ahead), x, y, round(_height(PRIORITY_FLOOR), 1), passed, fades_in
    )


def _height(value: float) -> float:
    return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)


def _points(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
