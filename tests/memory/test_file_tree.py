"""Random sequences of file commands against a plain directory tree in memory: same answers, same files, and search,
revisions and undo in step."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts.models import User
from apps.core.errors import IzzyError
from apps.memory.files.commands import command_run
from apps.memory.files.selectors import file_history
from apps.memory.files.services import file_undo
from apps.memory.models import MemoryFile
from apps.memory.notes.revisions import BY_ASSISTANT
from apps.search.documents import Source
from apps.search.models import Passage

pytestmark = pytest.mark.django_db(transaction=True)

LIKELY = ["/memories/a", "/memories/b/a", "/memories/b/b/a"]
RARE = ["/memories", "/memories/A", "/memories/ab", "/memories/b", "/memories/b/ab", "/memories/b/b/c/a"]
PATHS = st.sampled_from([*LIKELY, *RARE])
EDITED = st.sampled_from([*LIKELY, *LIKELY, "/memories/b"])
TEXTS = st.text(alphabet="xyz\n", max_size=8)
BEGINNING = [
    {"command": "create", "path": "/memories/a", "file_text": "x\ny\nz\n"},
    {"command": "create", "path": "/memories/b/b/a", "file_text": "xyz"},
]

COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": EDITED,
            "old_str": st.sampled_from(["x", "y", "z", "xy", "\n", "y\nz"]),
            "new_str": TEXTS,
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": EDITED,
            "insert_line": st.integers(-1, 4),
            "insert_text": TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


class Refused(Exception):
    """The tree refuses a command."""


@dataclass
class Tree:
    """A directory is a dict, a file a str. A directory without files is none."""

    root: dict[str, Any] = field(default_factory=dict)

    def at(self, path: str) -> Any:
        place: Any = self.root
        for name in path.split("/")[2:]:
            if not isinstance(place, dict) or name not in place:
                return None
            place = place[name]
        return place

    def put(self, path: str, thing: Any) -> None:
        *parents, name = path.split("/")[2:]
        place = self.root
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise Refused
        place[name] = thing

    def remove(self, path: str) -> Any:
        names = path.split("/")[2:]
        thing = self.at(path)
        if not names or thing is None:
            raise Refused
        del self.at("/".join(["", "memories", *names[:-1]]))[names[-1]]
        for count in range(len(names) - 1, 0, -1):
            if self.at("/".join(["", "memories", *names[:count]])) == {}:
                del self.at("/".join(["", "memories", *names[: count - 1]]))[names[count - 1]]
        return thing

    def files(self) -> dict[str, str]:
        def walk(place: Any, path: str) -> dict[str, str]:
            if isinstance(place, str):
                return {path: place}
            return {
                key: text
                for name, inner in place.items()
                for key, text in walk(inner, f"{path}/{name}").items()
            }

        return walk(self.root, "/memories")

    def run(self, given: dict[str, Any]) -> str:
        name = given["command"]
        path = given.get("path", "")
        there = self.at(path) if path else None
        match name:
            case "view":
                return self._view(path, there)
            case "create":
                if isinstance(there, dict):
                    raise Refused
                self.put(path, given["file_text"])
                return f"File created successfully at: {path}"
            case "str_replace":
                old = given["old_str"]
                places = [
                    at
                    for at in range(len(there or ""))
                    if isinstance(there, str) and there[at:].startswith(old)
                ]
                if len(places) != 1 or not isinstance(there, str):
                    raise Refused
                self.put(path, there[: places[0]] + given["new_str"] + there[places[0] + len(old) :])
                return "The memory file has been edited."
            case "insert":
                return self._insert(path, there, given)
            case "delete":
                self.remove(path)
                return f"Successfully deleted {path}"
        return self._rename(given["old_path"], given["new_path"])

    def _view(self, path: str, there: Any) -> str:
        if there is None:
            raise Refused
        if isinstance(there, str):
            numbered = [f"{number:6}\t{line}" for number, line in enumerate(there.split("\n"), 1)]
            return "\n".join([f"Here's the content of {path} with line numbers:", *numbered])
        lines = [f"{self._size(there)}B\t{path}"]
        for name, inner in sorted(there.items()):
            lines.append(f"{self._size(inner)}B\t{path}/{name}{'/' if isinstance(inner, dict) else ''}")
            for deep, deeper in sorted(inner.items()) if isinstance(inner, dict) else ():
                slash = "/" if isinstance(deeper, dict) else ""
                lines.append(f"{self._size(deeper)}B\t{path}/{name}/{deep}{slash}")
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        return "\n".join([head, *lines])

    def _size(self, thing: Any) -> int:
        return len(thing) if isinstance(thing, str) else sum(map(self._size, thing.values()))

    def _insert(self, path: str, there: Any, given: dict[str, Any]) -> str:
        if not isinstance(there, str):
            raise Refused
        lines = there.removesuffix("\n").split("\n") if there else []
        if not 0 <= given["insert_line"] <= len(lines):
            raise Refused
        lines[given["insert_line"] : given["insert_line"]] = [given["insert_text"].removesuffix("\n")]
        self.put(path, "".join(f"{line}\n" for line in lines))
        return f"The file {path} has been edited."

    def _rename(self, old: str, new: str) -> str:
        thing = self.at(old)
        parents = ["/".join(new.split("/")[:count]) for count in range(2, new.count("/") + 1)]
        blocked = any(isinstance(self.at(parent), str) for parent in parents)
        if old == "/memories" or thing is None or self.at(new) is not None:
            raise Refused
        if blocked or new.startswith(f"{old}/"):
            raise Refused
        self.put(new, self.remove(old))
        return f"Successfully renamed {old} to {new}"


def both(user: User, tree: Tree, given: dict[str, Any]) -> None:
    """The same command to both: both refuse it, or both answer the same."""
    before = tree.files()
    try:
        expected = tree.run(given)
    except Refused:
        with pytest.raises(IzzyError):
            command_run(user_id=user.pk, fields=given, change=BY_ASSISTANT)
        tree.root = {}
        for path, text in before.items():
            tree.put(path, text)
        return
    said = command_run(user_id=user.pk, fields=given, change=BY_ASSISTANT)
    if given["command"] == "str_replace":
        said = said.split(" Here is")[0]
    assert said == expected


def stored(user: User) -> dict[str, str]:
    return dict(MemoryFile.objects.for_user(user).values_list("path", "content"))


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(commands=st.lists(COMMANDS, min_size=8, max_size=20))
def test_the_files_are_those_of_a_plain_directory_tree(
    alice: User, commands: list[dict[str, Any]]
) -> None:
    for file in MemoryFile.objects.for_user(alice):
        command_run(
            user_id=alice.pk, fields={"command": "delete", "path": file.path}, change=BY_ASSISTANT
        )
    tree = Tree()
    for given_ in [*BEGINNING, *commands]:
        both(alice, tree, given_)
    assert stored(alice) == tree.files()
    passages = Passage.objects.filter(user_id=alice.pk, source=Source.FILE)
    assert {passage.external_id: passage.text for passage in passages} == {
        path: f"{path}\n\n{text}".strip() for path, text in tree.files().items()
    }
    check_the_way_back(alice)


def check_the_way_back(user: User) -> None:
    """Each file can be brought back to each version it had, where the path is free, and forth again."""
    for file in MemoryFile.objects.for_user(user):
        now = (file.path, file.content)
        versions = file_history(user.pk, file.pk)
        assert [version.current for version in versions] == [True] + [False] * (len(versions) - 1)
        for version in versions[1:]:
            if version.state["path"] == file.path:
                back = file_undo(user_id=user.pk, file_id=file.pk, version=version.version)
                assert (back.path, back.content) == (version.state["path"], version.content)
        forth = (
            file_undo(user_id=user.pk, file_id=file.pk, version=versions[0].version)
            if len(file_history(user.pk, file.pk)) > len(versions)
            else file
        )
        assert (forth.path, forth.content) == now
