"""Rules of who may import what, also inside functions and by import_string:

* `core ← accounts ← {agent, search} ← {memory, capabilities} ← builder ← chat ← gateway ← izzysite`: an app imports only those to its left,
  those in one brace never each other.
* Inside an app `models ← services, notes, catalog, builds, conversations ← recall, runs, turns ← api, pages, admin, urls`. The
  first part of a dotted name that is one of these counts, and those of the last layer wherever they stand. A module of other
  names may import all but the last layer, and be imported by all.
* No folder of an app imports another folder of it in a circle; a module beside the folders counts as one. Imports for type checkers
  alone do not count.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ORDER = [
    {"core"},
    {"accounts"},
    {"agent", "search"},
    {"memory", "capabilities"},
    {"builder"},
    {"chat"},
    {"gateway"},
    {"izzysite"},
]
PLACE = {name: place for place, names in enumerate(ORDER) for name in names}
LAYERS = [
    {"models"},
    {"services", "selectors", "notes", "catalog", "builds", "conversations"},
    {"recall", "runs", "turns"},
    {"api", "pages", "views", "admin", "urls", "consumers", "routing", "serializers"},
]
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}
TOP = len(LAYERS) - 1

SOURCES = sorted([*ROOT.glob("apps/**/*.py"), *ROOT.glob("izzysite/**/*.py")])


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers read."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            yield from nodes_that_run(node)


def imported(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[str, int]]:
    """The modules that a module names in imports, wherever they stand, and in import_string("…") and the like, with their lines."""
    for node in nodes_that_run(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + (1 if is_package else 0)
                base = ".".join([*parts[:keep], *([base] if base else [])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            yield from (
                (name, node.lineno) for name in {name if is_module(name) else base for name in names}
            )
        elif isinstance(node, ast.Call):
            yield from (
                (argument.value, node.lineno)
                for argument in node.args
                if isinstance(argument, ast.Constant)
                and isinstance(argument.value, str)
                and getattr(node.func, "attr", getattr(node.func, "id", ""))
                in {"import_string", "import_module"}
            )


def split(module: str) -> tuple[str, list[str]]:
    """The app of a module, and the parts of its name within the app; no app for what is none of ours."""
    first, *parts = module.split(".")
    if first == "izzysite":
        return first, parts
    return (parts[0], parts[1:]) if first == "apps" and parts else ("", [])


def misplaced(module: str, names: Iterable[str]) -> list[str]:
    """Those of the names that stand in an app which is not to the left of the module's."""
    own, _ = split(module)
    others = [(name, split(name)[0]) for name in names]
    return [
        name for name, app in others if app not in {"", own} and PLACE.get(app, len(ORDER)) >= PLACE[own]
    ]


def layer_of(parts: Iterable[str], unnamed: int) -> int:
    """Returns what the first part says that is named above, unless a later one is among the topmost."""
    layers = [
        LAYER["api" if part.startswith("api_") else part]
        for part in parts
        if part.startswith("api_") or part in LAYER
    ]
    return TOP if TOP in layers else [*layers, unnamed][0]


def mislayered(module: str, names: Iterable[str]) -> list[str]:
    """Those of the names that stand higher than the module: in its own app, or among the topmost of any."""
    own, parts = split(module)
    if own == "izzysite" or parts == ["apps"]:  # they bring all of it together
        return []
    highest = layer_of(parts, TOP - 1)
    layers = [(name, split(name)[0], layer_of(split(name)[1], 0)) for name in names]
    return [name for name, app, layer in layers if layer > highest and (app == own or layer == TOP)]


Links = dict[str, dict[str, list[str]]]


def links_of(app: str, sources: Mapping[str, str]) -> Links:
    """For each folder (or module beside the folders) of an app: which others it imports, and where. `sources` are by path."""
    links: Links = defaultdict(lambda: defaultdict(list))
    for path, source in sources.items():
        file = ROOT / path
        module = module_of(file)
        own, (room, *_) = split(module)[0], [*split(module)[1], ""]
        if own != app or room in {"", "apps"}:
            continue
        for name, line in imported(source, module, is_package=file.name == "__init__.py"):
            other, (target, *_) = split(name)[0], [*split(name)[1], ""]
            if other == app and target not in {"", room}:
                links[room][target].append(f"{path}:{line} {name}")
    return links


def circle(links: Links) -> list[str]:
    """Folders of which each is imported by the next, if any are."""
    try:
        TopologicalSorter(links).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def names_in(source: str, module: str) -> list[str]:
    return [name for name, _ in imported(source, module)]


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_module_imports_only_what_it_may(file: Path) -> None:
    module = module_of(file)
    names = [
        name for name, _ in imported(file.read_text(), module, is_package=file.name == "__init__.py")
    ]
    assert misplaced(module, names) == [], "to the right of it"
    assert mislayered(module, names) == [], "of a higher layer"


@pytest.mark.parametrize("app", sorted(PLACE))
def test_no_folder_of_an_app_imports_another_in_a_circle(app: str) -> None:
    links = links_of(app, {str(file.relative_to(ROOT)): file.read_text() for file in SOURCES})
    found = circle(links)
    assert not found, [links[room][imports] for imports, room in pairwise(found)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("apps.core.text", "from apps.accounts.models import User"),
        ("apps.agent.turn.loop", "from apps.search import selectors"),
        ("apps.memory.tools", "def f():\n    from apps.chat.models import Turn"),
        ("apps.search.services", "import apps.memory.models"),
        ("apps.chat.turns.work", "import izzysite.settings"),
        ("apps.memory.tools", "from ..chat import models"),
        ("apps.core.x", "import_string('apps.chat.models.Turn')"),
        ("apps.chat.x", "from apps.unheard_of import y"),
        ("apps.core.x", "from apps import chat"),
    ],
)
def test_an_app_to_the_right_is_seen(module: str, source: str) -> None:
    assert misplaced(module, names_in(source, module))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("apps.memory.models", "from apps.memory.serializers import X"),
        ("apps.memory.models.notes", "from apps.memory.notes.saving import save"),
        ("apps.memory.purge.services", "from apps.memory.views import page"),
        ("apps.memory.purge.services", "from apps.memory.pages.lists import page"),
        ("apps.memory.notes.saving", "from apps.memory.recall.deep import deep"),
        ("apps.chat.services.turns", "from apps.chat.views import page"),
        ("apps.chat.turns.actor", "def f():\n    from .. import api_chat"),
        ("apps.chat.prompt.parts", "from apps.memory.api.notes import NoteView"),
    ],
)
def test_a_higher_layer_is_seen(module: str, source: str) -> None:
    assert mislayered(module, names_in(source, module))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("apps.memory.recall.deep", "from apps.memory.notes.saving import save"),
        ("apps.chat.conversations.sending", "from apps.memory.recall.selectors import surface"),
        ("apps.memory.pages.lists", "from apps.memory.models import Memory"),
        ("apps.memory.models", "from apps.memory.fields import Text"),
        ("apps.memory.apps", "from apps.memory.api import notes"),
    ],
)
def test_a_lower_layer_may_be_imported(module: str, source: str) -> None:
    assert not mislayered(module, names_in(source, module))


def test_a_circle_of_folders_is_seen() -> None:
    typing = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from apps.memory.recall import deep"
    )
    sources = {
        "apps/memory/recall/deep.py": "def f():\n    from apps.memory.trust.rules import judged",
        "apps/memory/trust/rules.py": typing,
        "apps/memory/trust/judging.py": "from apps.memory.trust import rules",
        "apps/memory/trust_words.py": "from apps.memory.recall import deep",
    }
    assert not circle(links_of("memory", sources))
    sources["apps/memory/trust/judging.py"] = "from ..trust_words import WORDS"
    assert set(circle(links_of("memory", sources))) == {"recall", "trust", "trust_words"}


def test_every_app_has_its_place() -> None:
    names = {folder.name for folder in (ROOT / "apps").iterdir() if (folder / "apps.py").exists()}
    assert names | {"izzysite"} == set(PLACE)
