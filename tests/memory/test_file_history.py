"""Files keep what they were: undo, restore, and the end after 30 days; search is in step with each of it."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.core.errors import Conflict, NotFound
from apps.core.ids import uuid7
from apps.memory.files import services
from apps.memory.files.selectors import file_history
from apps.memory.files.services import (
    file_delete,
    file_rename,
    file_replace,
    file_restore,
    file_undo,
    file_update,
    file_write,
)
from apps.memory.models import MemoryFile, MemoryFileRevision, Origin
from apps.memory.notes.revisions import BY_ASSISTANT, BY_USER
from apps.memory.purge import deleted_purge
from apps.search.documents import Scope, Source
from apps.search.models import Passage
from apps.search.selectors import search

pytestmark = pytest.mark.django_db(transaction=True)

FILES = Scope(sources=frozenset({Source.FILE}))
PATH = "/memories/food.txt"


def write(user: User, text: str, path: str = PATH) -> MemoryFile:
    return file_write(user_id=user.pk, path=path, text=text, change=BY_ASSISTANT)


def found(user: User, query: str) -> list[str]:
    """The paths of the files that search finds, best first."""
    return [hit.external_id for hit in search(user.pk, query, top_k=10, scope=FILES)]


def test_every_change_is_kept_with_who_made_it(alice: User) -> None:
    file = write(alice, "Likes tea.")
    file_replace(user_id=alice.pk, path=PATH, old="tea", new="coffee", change=BY_USER)
    file_rename(user_id=alice.pk, old_path=PATH, new_path="/memories/drinks.txt", change=BY_ASSISTANT)
    versions = file_history(alice.pk, file.pk)
    assert [(v.version, v.action, v.actor, v.state["path"], v.content, v.current) for v in versions] == [
        (3, "renamed", Origin.ASSISTANT, "/memories/drinks.txt", "Likes coffee.", True),
        (2, "edited", Origin.USER, PATH, "Likes coffee.", False),
        (1, "created", Origin.ASSISTANT, PATH, "Likes tea.", False),
    ]


def test_what_changes_nothing_is_no_version(alice: User) -> None:
    file = write(alice, "Likes tea.")
    write(alice, "Likes tea.")
    assert len(file_history(alice.pk, file.pk)) == 1


def test_any_version_can_be_gone_back_to_and_forth_again(alice: User) -> None:
    file = write(alice, "Likes tea.")
    write(alice, "")
    file_rename(user_id=alice.pk, old_path=PATH, new_path="/memories/b/c.txt")
    back = file_undo(user_id=alice.pk, file_id=file.pk, version=1)
    assert (back.path, back.content, back.size) == (PATH, "Likes tea.", 10)
    forth = file_undo(user_id=alice.pk, file_id=file.pk, version=3)
    assert (forth.path, forth.content, forth.size) == ("/memories/b/c.txt", "", 0)
    assert file_history(alice.pk, file.pk)[0].action == "undone"
    with pytest.raises(NotFound):
        file_undo(user_id=alice.pk, file_id=file.pk, version=99)


def test_a_file_goes_back_into_the_directory_that_it_became(alice: User) -> None:
    file = write(alice, "x", "/memories/a")
    file_rename(user_id=alice.pk, old_path="/memories/a", new_path="/memories/z")
    file_rename(user_id=alice.pk, old_path="/memories/z", new_path="/memories/a/b")
    assert file_undo(user_id=alice.pk, file_id=file.pk, version=1).path == "/memories/a"
    assert file_undo(user_id=alice.pk, file_id=file.pk, version=3).path == "/memories/a/b"


def test_a_path_taken_meanwhile_is_not_overwritten(alice: User) -> None:
    first = write(alice, "first")
    file_delete(user_id=alice.pk, path=PATH)
    write(alice, "second")
    with pytest.raises(Conflict):
        file_restore(user_id=alice.pk, file_id=first.pk)
    with pytest.raises(Conflict):
        file_undo(user_id=alice.pk, file_id=first.pk, version=1)
    file_delete(user_id=alice.pk, path=PATH)
    write(alice, "third", f"{PATH}/in/directory")
    with pytest.raises(Conflict):
        file_restore(user_id=alice.pk, file_id=first.pk)
    assert [file.content for file in MemoryFile.objects.for_user(alice)] == ["third"]


def test_search_follows_at_once(alice: User) -> None:
    file = write(alice, "The user is allergic to shellfish.", "/memories/allergies.txt")
    assert found(alice, "shellfish") == ["/memories/allergies.txt"]
    assert found(alice, "allergies file") == ["/memories/allergies.txt"]
    write(alice, "The user is allergic to hazelnuts.", "/memories/allergies.txt")
    assert [
        hit.text for hit in search(alice.pk, "shellfish", scope=FILES) if "shellfish" in hit.text
    ] == []
    file_rename(user_id=alice.pk, old_path="/memories/allergies.txt", new_path="/memories/health.txt")
    assert found(alice, "hazelnuts") == ["/memories/health.txt"]
    file_delete(user_id=alice.pk, path="/memories/health.txt")
    assert found(alice, "hazelnuts") == []
    file_restore(user_id=alice.pk, file_id=file.pk)
    assert found(alice, "hazelnuts") == ["/memories/health.txt"]
    file_undo(user_id=alice.pk, file_id=file.pk, version=1)
    assert found(alice, "shellfish") == ["/memories/allergies.txt"]


def test_a_whole_directory_is_restored_file_by_file(alice: User) -> None:
    files = [write(alice, name, f"/memories/p/{name}") for name in ("a", "b", "c/d")]
    file_delete(user_id=alice.pk, path="/memories/p")
    for file in files:
        file_restore(user_id=alice.pk, file_id=file.pk)
    assert [file.path for file in MemoryFile.objects.for_user(alice).order_by("path")] == [
        "/memories/p/a",
        "/memories/p/b",
        "/memories/p/c/d",
    ]


def test_after_thirty_days_nothing_is_left(alice: User) -> None:
    write(alice, "Likes rhubarb.")
    gone = write(alice, "Likes xylitol.", "/memories/gone.txt")
    file_delete(user_id=alice.pk, path="/memories/gone.txt")
    deleted_purge()
    assert file_history(alice.pk, gone.pk)
    MemoryFile.objects.with_deleted(alice.pk).filter(pk=gone.pk).update(
        deleted_at=timezone.now() - timedelta(days=30, seconds=1)
    )
    for call in (
        lambda: file_restore(user_id=alice.pk, file_id=gone.pk),
        lambda: file_history(alice.pk, gone.pk),
    ):
        with pytest.raises(NotFound):
            call()
    deleted_purge()
    assert not MemoryFile.objects.with_deleted(alice.pk).filter(pk=gone.pk).exists()
    assert not MemoryFileRevision.objects.for_user(alice).filter(file_id=gone.pk).exists()
    assert [file.path for file in MemoryFile.objects.for_user(alice)] == [PATH]


def test_old_versions_give_way(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_FILE_REVISIONS", 3)
    file = write(alice, "0")
    for number in range(1, 7):
        write(alice, str(number))
    versions = file_history(alice.pk, file.pk)
    assert [(version.version, version.content) for version in versions] == [
        (7, "6"),
        (6, "5"),
        (5, "4"),
        (4, "3"),
    ]
    assert file_undo(user_id=alice.pk, file_id=file.pk, version=4).content == "3"


def test_path_and_text_change_together_or_not_at_all(alice: User) -> None:
    file = write(alice, "one")
    write(alice, "other", "/memories/other.txt")
    with pytest.raises(Conflict):
        file_update(user_id=alice.pk, file_id=file.pk, path="/memories/other.txt", text="two")
    changed = file_update(user_id=alice.pk, file_id=file.pk, path="/memories/new.txt", text="two")
    assert (changed.path, changed.content) == ("/memories/new.txt", "two")
    assert len(file_history(alice.pk, file.pk)) == 3


def test_another_user_has_no_way_to_it(alice: User, bob: User) -> None:
    file = write(alice, "hers")
    file_delete(user_id=alice.pk, path=PATH)
    for file_id in (file.pk, uuid7(), uuid4()):
        with pytest.raises(NotFound):
            file_restore(user_id=bob.pk, file_id=file_id)
        with pytest.raises(NotFound):
            file_undo(user_id=bob.pk, file_id=file_id, version=1)
        with pytest.raises(NotFound):
            file_update(user_id=bob.pk, file_id=file_id, path=PATH, text="his")
        with pytest.raises(NotFound):
            file_history(bob.pk, file_id)
    assert found(bob, "hers") == []


def test_an_account_leaves_no_file_behind(alice: User, bob: User) -> None:
    write(alice, "hers")
    write(alice, "hers again")
    write(alice, "gone", "/memories/gone.txt")
    file_delete(user_id=alice.pk, path="/memories/gone.txt")
    write(bob, "his")
    user_delete(user=alice)
    assert [file.content for file in MemoryFile.everything.all()] == ["his"]
    assert not MemoryFileRevision.everything.exists()
    assert {passage.user_id for passage in Passage.objects.all()} == {bob.pk}


def test_moving_and_deleting_a_directory_costs_as_much_for_many_files_as_for_few(
    alice: User, django_assert_max_num_queries: Any
) -> None:
    """Each of its files keeps what it was all the same."""
    for number in range(30):
        write(alice, f"Recipe {number}.", f"/memories/food/{number}.txt")
    with django_assert_max_num_queries(40):
        moved = file_rename(user_id=alice.pk, old_path="/memories/food", new_path="/memories/meals")
    with django_assert_max_num_queries(40):
        file_delete(user_id=alice.pk, path="/memories/meals")
    assert found(alice, "recipe") == []
    for file in moved:
        assert [version.action for version in file_history(alice.pk, file.pk)] == [
            "deleted",
            "renamed",
            "created",
        ]
    file_undo(user_id=alice.pk, file_id=moved[0].pk, version=1)
    assert [path.startswith("/memories/food/") for path in found(alice, "recipe")] == [True]
