"""Sensitive things are kept at once where the user asked for it in their own words, and waits where nobody did."""

from collections.abc import Sequence

import pytest

from apps.accounts.models import Preferences, Review, User
from apps.agent.selectors import ConversationTaint
from apps.core.db.pool import in_db
from apps.core.ids import parse_id, uuid7
from apps.memory.models import Memory, Status
from apps.memory.trust import needs_a_look
from tests.memory.conftest import MakeNote, found_texts
from tests.tools import Tools

WIFI = "The user's home wifi password is hunter2-blue."


def waits(content: str, *said: str, known: str = "") -> bool:
    return needs_a_look(
        ConversationTaint(user_id=uuid7(), messages=lambda: said), [content], known=known
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (WIFI, ["Remember my home wifi password is hunter2-blue"]),
        (WIFI, ["Hi!", "Please save: my home wifi password is hunter2-blue.", "thanks"]),
        (WIFI, ["Don't forget: my home wifi password is hunter2-blue."]),
        ("The user's PIN is 4711.", ["note that my PIN is 4711"]),
        (
            "My IBAN is DE89 3704 0044 0532 0130 00",
            ["Save my IBAN. Remember: my IBAN is DE89 3704 0044 0532 0130 00"],
        ),
        ("Das WLAN-Passwort ist hunter2.", ["Merk dir, das WLAN-Passwort ist hunter2"]),
        ("The user likes tea.", []),
        ("The user forgot a password once.", ["Remember that I forgot a password once"]),
    ],
)
def test_what_the_user_asked_to_keep_needs_no_second_look(content: str, said: Sequence[str]) -> None:
    assert not waits(content, *said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (WIFI, []),
        (WIFI, ["My home wifi password is hunter2-blue."]),
        (WIFI, ["The wifi password is hunter2-blue, how do I make a QR code of it?"]),
        (WIFI, ["My home wifi password is hunter2-blue. Don't save that!"]),
        (WIFI, ["Remember that I like tea", "The wifi password is hunter2-blue, is it a good one?"]),
        (WIFI, ["Do you remember my home wifi password is hunter2-blue?"]),
        (WIFI, ["Remember my home wifi password is something-else"]),
        (WIFI, ["Can you remember my wifi password?", "It's hunter2-blue"]),
        (WIFI, ["> Remember my home wifi password is hunter2-blue"]),
        (WIFI, ["Bitte das wifi password hunter2-blue nicht merken, merk dir das nicht"]),
        ("The user's PIN is 4711 and the card 4012 8888 8888 1881.", ["Remember my PIN is 4711"]),
    ],
)
def test_what_nobody_asked_to_keep_waits(content: str, said: Sequence[str]) -> None:
    assert waits(content, *said)


def test_what_the_user_keeps_already_may_be_corrected_in_their_words() -> None:
    new = "The user's wifi password is green-tree7."
    assert not waits(new, "My wifi password is green-tree7.", known=WIFI)
    assert waits(new, "The wifi was slow today", known=WIFI)
    assert waits(new, "My wifi password is green-tree7.", known="The user's wifi is called Izzy.")


def tools(user: User, *said: str) -> Tools:
    return Tools(user_id=user.pk, taint=ConversationTaint(user_id=user.pk, messages=lambda: said))


async def save(held: Tools, content: str, name: str = "memory_save") -> dict[str, str]:
    answer: dict[str, str] = await held.call(name, content=content)
    return answer


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["memory_save", "store_memory"])
async def test_a_password_that_the_assistant_saves_by_itself_waits(alice: User, name: str) -> None:
    answer = await save(tools(alice, "The wifi password is hunter2-blue, is it good?"), WIFI, name)
    assert answer["status"] == "pending"
    assert "sensitive" in answer["message"]
    assert "did not ask" in answer["message"]
    assert await in_db(found_texts, alice, "wifi password") == []


@pytest.mark.django_db(transaction=True)
async def test_a_password_that_the_user_asked_to_remember_is_kept(alice: User) -> None:
    answer = await save(tools(alice, "Remember: my home wifi password is hunter2-blue"), WIFI)
    assert answer["message"] == "Saved."
    assert await in_db(found_texts, alice, "wifi password") == [WIFI]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("review", "asked", "status"),
    [
        (Review.NOTHING, False, Status.ACTIVE),
        (Review.SENSITIVE, False, Status.PENDING),
        (Review.SENSITIVE, True, Status.ACTIVE),
        (Review.EVERYTHING, True, Status.PENDING),
    ],
)
async def test_the_preference_decides(alice: User, review: Review, asked: bool, status: Status) -> None:
    await in_db(lambda: Preferences.objects.filter(user=alice).update(review=review))
    said = (
        "Remember: my home wifi password is hunter2-blue"
        if asked
        else "The wifi password is hunter2-blue."
    )
    saved = await save(tools(alice, said), WIFI)
    row = await in_db(lambda: Memory.objects.for_user(alice).get(pk=parse_id(saved["note_id"])))
    assert row.status == status


@pytest.mark.django_db(transaction=True)
async def test_a_password_put_into_a_note_waits_as_a_change(alice: User, note: MakeNote) -> None:
    made = await in_db(note, alice, "The user's wifi is called Izzy.")
    answer = await tools(alice, "The wifi is slow today").call(
        "memory_update", note_id=made.note_id, content=WIFI
    )
    assert answer["status"] == "pending"
    kept = await in_db(lambda: Memory.objects.for_user(alice).get(pk=made.pk))
    assert kept.content == "The user's wifi is called Izzy."
