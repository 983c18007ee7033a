"""core ← accounts ← {agent, search} ← {memory, capabilities} ← builder ← chat ← gateway ← izzysite: a name imports only those to
its left, names in one brace never each other, also not inside functions."""

import ast
from collections.abc import Iterator
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
BENEATH = {"models", "services", "selectors"}
ABOVE = {"views", "consumers", "serializers", "api", "admin", "urls", "api_urls", "routing"}

SOURCES = sorted([*ROOT.glob("apps/**/*.py"), *ROOT.glob("izzysite/**/*.py")])


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """The modules that a syntax tree names in imports, wherever they stand, and in import_string("…") and the like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + (1 if is_package else 0)
                base = ".".join([*parts[:keep], *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from (
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant)
                and isinstance(argument.value, str)
                and getattr(node.func, "attr", getattr(node.func, "id", ""))
                in {"import_string", "import_module"}
            )


def app_of(module: str) -> str:
    parts = module.split(".")
    if parts[0] == "izzysite":
        return "izzysite"
    return parts[1] if parts[0] == "apps" and len(parts) > 1 else ""


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What in a module's source breaks the rule."""
    own = app_of(module)
    layer = module.split(".")[2] if module.startswith("apps.") and module.count(".") >= 2 else ""
    found = []
    for name in imported(ast.parse(source), module, is_package):
        other = app_of(name)
        if other and other != own and (other not in PLACE or PLACE[other] >= PLACE[own]):
            found.append(f"{module} imports {name}")
        if layer in BENEATH and other and name.split(".")[2:3] and name.split(".")[2] in ABOVE:
            found.append(f"{module} imports {name}: {layer} know nothing of what stands above them")
    return found


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_module_imports_only_what_stands_to_its_left(file: Path) -> None:
    assert violations(file.read_text(), module_of(file), is_package=file.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("apps.core.text", "from apps.accounts.models import User"),
        ("apps.agent.loop", "from apps.search import selectors"),
        ("apps.memory.tools", "def f():\n    from apps.chat.models import Turn"),
        ("apps.search.services", "import apps.memory.models"),
        ("apps.chat.runner.work", "import izzysite.settings"),
        ("apps.memory.tools", "from ..chat import models"),
        ("apps.core.x", "import_string('apps.chat.models.Turn')"),
        ("apps.memory.models", "from apps.memory.serializers import X"),
        ("apps.chat.services.turns", "from apps.chat.views import page"),
        ("apps.chat.x", "from apps.unheard_of import y"),
    ],
)
def test_the_rule_is_seen_to_be_broken(module: str, source: str) -> None:
    assert violations(source, module)


def test_every_app_has_its_place() -> None:
    names = {folder.name for folder in (ROOT / "apps").iterdir() if (folder / "apps.py").exists()}
    assert names <= set(PLACE)
