"""When a note matters: who says so, and what becomes of it when the note changes."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.errors import IzzyError
from apps.memory.models import Memory, Origin, Trust
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_bulk_create, memory_submit
from apps.memory.notes.joining import memory_absorb, memory_merge, memory_supersede
from apps.memory.notes.review import review_accept, review_merge
from apps.memory.notes.revisions import BY_ASSISTANT, Change
from apps.memory.notes.undoing import memory_undo
from apps.memory.occasions.phrases import clean_occasions, usable_occasions
from apps.search.models import Passage
from apps.search.selectors import search
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db

ALLERGY = "The user is allergic to peanuts."
NO_KIND = "Zorp quux blarg."
MINE = ["packing for the office"]
FOREIGN = Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED)


def now(note: Memory) -> tuple[list[str], str]:
    """The note's occasions and who made them, as they are stored."""
    row = Memory.everything.get(pk=note.pk)
    return row.occasions, row.occasions_by


def indexed(note: Memory) -> list[str]:
    """Returns search's phrases of when the note matters."""
    rows = Passage.objects.filter(source_id=note.pk, facet="occasions").order_by("part", "id")
    return [phrase for row in rows for phrase in row.text.splitlines()]


def update(user: User, note: Memory, change: Change | None = None, **changes: Any) -> Memory:
    options = {"change": change} if change else {}
    return memory_update(user_id=user.pk, memory_id=note.pk, **options, **changes)


@pytest.mark.parametrize(
    "phrases",
    [
        ["one"] * 9,
        ["x" * 61],
        ["two\nlines"],
        ["two\u2028lines"],
        ["tab\tinside"],
        ["a\x00b"],
        ["bell\x07"],
        ["turned \u202e round"],
        ["as in note-0190a5e0-0000-7000-8000-000000000000"],
        [""],
        ["  "],
        [5],
        [None],
        ["\ud800"],
        "choosing a restaurant",
        {"a": 1},
        5,
    ],
)
def test_bad_phrases_are_refused_and_the_field_named(phrases: object) -> None:
    with pytest.raises(IzzyError) as refused:
        clean_occasions(phrases)
    assert refused.value.extra["field"] == "occasions"


def test_phrases_are_stripped_and_each_stands_once() -> None:
    given = ["  choosing a  restaurant ", "Choosing a restaurant", "note-taking in class", "x" * 60]
    assert clean_occasions(given) == ["choosing a restaurant", "note-taking in class", "x" * 60]


def test_of_a_models_phrases_the_good_ones_are_kept() -> None:
    given = ["cooking dinner.", "", 5, "x" * 61, "Cooking dinner", "two\nlines", *map(str, range(9))]
    assert usable_occasions(given) == ["cooking dinner", *map(str, range(7))]
    assert usable_occasions("cooking") == usable_occasions(None) == []


def test_a_fresh_note_has_those_of_its_kind_at_once(alice: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY)
    assert now(made) == (made.occasions, "rules")
    assert 1 <= len(made.occasions) <= 8
    assert clean_occasions(made.occasions) == made.occasions
    assert indexed(made) == made.occasions


def test_a_note_of_no_kind_has_none_and_waits_for_a_model(alice: User, note: MakeNote) -> None:
    made = note(alice, NO_KIND)
    assert now(made) == ([], "")
    assert made.occasions_wait == "model"
    assert indexed(made) == []


def test_those_that_come_with_a_note_are_the_writers(alice: User, note: MakeNote) -> None:
    assert now(note(alice, ALLERGY, occasions=MINE)) == (MINE, "user")
    theirs = memory_submit(user_id=alice.pk, content=NO_KIND, change=BY_ASSISTANT, occasions=MINE)
    assert now(theirs) == (MINE, "model")


def test_many_notes_at_once_have_theirs(alice: User) -> None:
    drafts: list[dict[str, Any]] = [
        {"content": ALLERGY},
        {"content": NO_KIND},
        {"content": "Tea.", "occasions": MINE},
    ]
    first, second, third = memory_bulk_create(user_id=alice.pk, drafts=drafts)
    assert (now(first)[1], now(second), now(third)) == ("rules", ([], ""), (MINE, "user"))
    assert [indexed(row) for row in (first, second, third)] == [first.occasions, [], MINE]


def test_what_repeats_others_words_brings_none_with_it(alice: User) -> None:
    made = memory_submit(user_id=alice.pk, content=NO_KIND, change=FOREIGN, occasions=["any message"])
    assert now(made) == ([], "")
    assert now(memory_submit(user_id=alice.pk, content=ALLERGY, change=FOREIGN))[1] == "rules"


def test_a_new_text_has_them_made_anew(alice: User, note: MakeNote) -> None:
    made = memory_submit(user_id=alice.pk, content=NO_KIND, change=BY_ASSISTANT, occasions=MINE)
    update(alice, made, content=ALLERGY)
    phrases, by = now(made)
    assert by == "rules"
    assert phrases != MINE
    assert indexed(made) == phrases
    update(alice, made, content="Quux zorp.")
    assert now(made) == ([], "")
    assert indexed(made) == []


def test_a_new_text_of_the_assistant_too(alice: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY)
    update(alice, made, BY_ASSISTANT, content=NO_KIND)
    assert now(made) == ([], "")


def test_those_that_the_user_wrote_stay(alice: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY)
    update(alice, made, occasions=MINE)
    assert now(made) == (MINE, "user")
    assert indexed(made) == MINE
    update(alice, made, content=NO_KIND)
    update(alice, made, BY_ASSISTANT, content="Blarg.")
    assert now(made) == (MINE, "user")


def test_other_fields_leave_them_alone(alice: User, note: MakeNote) -> None:
    made = memory_submit(user_id=alice.pk, content=ALLERGY, change=BY_ASSISTANT, occasions=MINE)
    update(alice, made, tags=["food"], importance=5)
    assert now(made) == (MINE, "model")
    assert indexed(made) == MINE


def test_the_same_ones_again_are_nobodys_word(alice: User, note: MakeNote) -> None:
    """As a form or a program sends them that has read them."""
    made = note(alice, ALLERGY)
    before = now(made)
    update(alice, made, content=ALLERGY, occasions=before[0])
    assert now(made) == before
    update(alice, made, content=NO_KIND, occasions=before[0])
    assert now(made) == ([], "")


def test_the_user_may_want_none_or_have_them_made(alice: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY)
    update(alice, made, occasions=[])
    assert now(made) == ([], "user")
    assert indexed(made) == []
    update(alice, made, content="The user is allergic to walnuts.")
    assert now(made) == ([], "user")
    update(alice, made, occasions=None)
    assert now(made)[1] == "rules"


def test_undoing_brings_back_those_of_the_version(alice: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY, occasions=MINE)
    update(alice, made, occasions=["going for a walk"])
    update(alice, made, content=NO_KIND, occasions=None)
    assert now(made) == ([], "")
    memory_undo(user_id=alice.pk, memory_id=made.pk, version=2)
    assert now(made) == (["going for a walk"], "user")
    memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
    assert now(made) == (MINE, "user")
    assert indexed(made) == MINE


def test_merged_notes_have_what_the_user_wrote_for_any(alice: User, note: MakeNote) -> None:
    into, other = note(alice, ALLERGY, occasions=MINE), note(alice, NO_KIND, occasions=["at the sea"])
    plain = note(alice, "The user's birthday is in May.")
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk, plain.pk])
    assert now(into) == ([*MINE, "at the sea"], "user")
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=1)
    assert (now(into), now(other)) == ((MINE, "user"), (["at the sea"], "user"))


def test_merged_notes_that_the_user_wrote_none_for_have_them_made_anew(
    alice: User, note: MakeNote
) -> None:
    into, other = note(alice, NO_KIND), note(alice, ALLERGY)
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk])
    assert now(into) == (other.occasions, "rules")


def test_a_note_in_the_place_of_another_takes_over_what_the_user_wrote(
    alice: User, note: MakeNote
) -> None:
    typed, made = note(alice, ALLERGY, occasions=MINE), note(alice, ALLERGY)
    for change in (
        Change(actor=Origin.USER, trust=Trust.USER),
        Change(actor=Origin.EXTRACTION, trust=Trust.USER),
    ):
        newer = memory_supersede(
            user_id=alice.pk, memory_id=typed.pk, content=f"{NO_KIND} {change.actor}", change=change
        )
        assert now(newer) == (MINE, "user")
    other = memory_supersede(user_id=alice.pk, memory_id=made.pk, content=NO_KIND)
    assert now(other) == ([], "")
    given = memory_supersede(user_id=alice.pk, memory_id=newer.pk, content="Quux.", occasions=["at sea"])
    assert now(given) == (["at sea"], "user")


def test_what_a_note_takes_in_brings_its_own_with_its_text(alice: User, note: MakeNote) -> None:
    by_capture = Change(actor=Origin.EXTRACTION, trust=Trust.USER)
    made, typed = note(alice, ALLERGY), note(alice, ALLERGY, occasions=MINE)
    for row in (made, typed):
        memory_absorb(
            user_id=alice.pk, memory_id=row.pk, content=NO_KIND, occasions=["at sea"], change=by_capture
        )
    assert (now(made), now(typed)) == ((["at sea"], "model"), (MINE, "user"))
    foreign = memory_submit(user_id=alice.pk, content=ALLERGY, change=FOREIGN)
    review_accept(user_id=alice.pk, memory_id=foreign.pk)
    memory_absorb(
        user_id=alice.pk, memory_id=foreign.pk, content=NO_KIND, occasions=MINE, change=by_capture
    )
    assert now(foreign) == ([], "")


def test_a_proposal_that_is_accepted_leaves_those_of_the_user(alice: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY, occasions=MINE)
    waiting = update(alice, made, FOREIGN, content=NO_KIND)
    assert now(waiting) == ([], "")
    review_accept(user_id=alice.pk, memory_id=waiting.pk)
    assert now(made) == (MINE, "user")
    replacing = memory_supersede(
        user_id=alice.pk, memory_id=made.pk, content="Quux.", change=FOREIGN, occasions=["always"]
    )
    assert now(replacing) == ([], "")
    assert now(review_accept(user_id=alice.pk, memory_id=replacing.pk)) == (MINE, "user")


def test_a_waiting_note_that_is_merged_brings_what_the_user_wrote_for_it(
    alice: User, note: MakeNote
) -> None:
    made = note(alice, ALLERGY)
    waiting = memory_submit(user_id=alice.pk, content=NO_KIND, change=FOREIGN)
    update(alice, waiting, occasions=MINE)
    review_merge(user_id=alice.pk, memory_id=waiting.pk, into_id=made.pk)
    assert now(made) == (MINE, "user")


def test_plain_search_is_the_same_without_them(alice: User, bob: User, note: MakeNote) -> None:
    for user, occasions in ((alice, ["polishing the trombone"]), (bob, [])):
        note(user, NO_KIND, occasions=occasions)
        note(user, "The trombone is in the attic.")
    for query in ("polishing the trombone", "zorp quux"):
        ours, theirs = (search(user.pk, query) for user in (alice, bob))
        assert [(hit.text, hit.score, hit.parts) for hit in ours] == [
            (hit.text, hit.score, hit.parts) for hit in theirs
        ]


def test_waiting_notes_are_in_no_search_until_they_are_accepted(alice: User) -> None:
    waiting = memory_submit(user_id=alice.pk, content=ALLERGY, change=FOREIGN)
    assert waiting.occasions
    assert indexed(waiting) == []
    review_accept(user_id=alice.pk, memory_id=waiting.pk)
    assert indexed(waiting) == waiting.occasions
