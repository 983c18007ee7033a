"""Settings of an operator are in README.md's table and in .env.example, and nothing else is."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import get_commands

from apps.chat import consumers
from apps.chat.stream import limits as socket_limits
from apps.core.management.commands.benchmark import benchmark_names

ROOT = Path(settings.BASE_DIR)
NAME = re.compile(r"[A-Z][A-Z0-9_]*_[A-Z0-9_]+|DATABASE_URL")


@cache
def settings_read() -> frozenset[str]:
    """The environment variables that any of our modules reads, through the helpers or os.environ."""
    found = {"IZZY_ENV_FILE"}
    for file in [*ROOT.glob("izzysite/*.py"), *ROOT.glob("apps/**/*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                value = node.args[0].value
                if name.startswith("env_") or (
                    name in {"get", "getenv"} and "environ" in ast.unparse(node.func)
                ):
                    found.add(str(value))
    return frozenset(found)


def in_readme() -> set[str]:
    return set(re.findall(r"^\| `([A-Z0-9_]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE))


def in_example() -> set[str]:
    return set(re.findall(r"^#? ?([A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def composed_with() -> set[str]:
    """The values that compose.yaml asks for; not all are settings of Izzy's own."""
    text = (ROOT / "deploy" / "compose.env.example").read_text()
    return set(re.findall(r"^([A-Z0-9_]+)=", text, re.MULTILINE))


def test_some_settings_are_read() -> None:
    assert {"IZZY_DATA_DIR", "IZZY_PORT", "ANTHROPIC_API_KEY", "REDIS_URL"} <= settings_read()


def test_the_readme_names_every_setting_and_no_other() -> None:
    assert in_readme() == settings_read()


def test_the_example_names_every_setting_but_the_one_that_says_where_it_lies() -> None:
    assert in_example() == settings_read() - {"IZZY_ENV_FILE"}


@pytest.mark.parametrize("document", sorted(ROOT.glob("docs/*.md")), ids=lambda file: file.name)
def test_documents_name_only_settings_that_exist(document: Path) -> None:
    named = set(re.findall(r"`(IZZY_[A-Z0-9_]+)", document.read_text()))
    known = settings_read() | composed_with() | {"IZZY_URL", "IZZY_TOKEN"}  # those of the command line
    assert not [name for name in named - known if not hasattr(settings, name)]


def test_our_commands_are_in_the_readme() -> None:
    own = {name for name, app in get_commands().items() if str(app).startswith("apps.")} - {
        "web",
        "worker",
    }
    text = (ROOT / "README.md").read_text()
    assert not [name for name in sorted(own) if f"manage.py {name}" not in text]


def test_every_benchmark_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [name for name in benchmark_names() if f"`{name}`" not in text] == []


def test_every_frame_and_closing_code_of_the_websocket_is_documented() -> None:
    text = (ROOT / "docs" / "programs.md").read_text()
    codes = [
        value
        for name, value in {**vars(consumers), **vars(socket_limits)}.items()
        if name.startswith("CLOSE_")
    ]
    wanted = [*(f'type: "{name}"' for name in consumers.HANDLERS), *map(str, codes)]
    assert len(codes) >= 3
    assert [name for name in wanted if name not in text] == []


def test_the_table_of_who_owns_what_names_every_row() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for app in apps.get_app_configs():
        if app.name.startswith("apps."):
            (rows,) = re.findall(rf"^\| `apps/{app.label}/` \|.*\| (.*) \|$", text, re.MULTILINE)
            assert sorted(rows.split(", ")) == sorted(model.__name__ for model in app.get_models())


def test_files_that_documents_link_to_exist() -> None:
    for document in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))], ids=lambda file: file.name
)
def test_files_and_modules_that_documents_name_exist(document: Path) -> None:
    text = document.read_text()
    named = re.findall(r"`((?:apps|izzysite|benchmarks|tests|templates|static)[./][\w./*-]+)`", text)
    assert [name for name in named if not exists(name)] == []


def exists(name: str) -> bool:
    """A path, or a module with perhaps something in it (`apps.core.health.check_disk`)."""
    if "/" in name:
        return any(ROOT.glob(name.rstrip("/")))
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        module = (
            place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        )
        if place.is_dir() or module.is_file():
            left = parts[length:]
            return not left or (
                module.is_file() and re.search(rf"\b{left[0]}\b", module.read_text()) is not None
            )
    return False
