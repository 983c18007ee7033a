"""The project as a whole: migrations, admin, lock, sizes."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.core.management import call_command
from django.test import Client

from apps.accounts.models import User

ROOT = Path(settings.BASE_DIR)
OURS = [model for model in apps.get_models() if model.__module__.startswith("apps.")]
SOURCES = sorted(
    [*ROOT.glob("apps/**/*.py"), *ROOT.glob("izzysite/*.py"), *ROOT.glob("benchmarks/*.py")]
)


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_settings_raise_no_warning() -> None:
    call_command("check", fail_level="WARNING")


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_every_model_is_in_the_admin(model: type) -> None:
    assert admin.site.is_registered(model)


@pytest.mark.django_db
@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_every_admin_list_opens_searches_and_filters(model: type, admin: User) -> None:
    client = Client()
    client.force_login(admin)
    meta = model._meta  # type: ignore[attr-defined]
    url = f"/admin/{meta.app_label}/{meta.model_name}/"
    assert client.get(url).status_code == 200
    assert client.get(url + "?q=anything").status_code == 200


@pytest.mark.django_db
def test_the_admin_is_for_superusers_alone(alice: User, admin: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    client = Client()
    client.force_login(User.objects.get(pk=alice.pk))
    for model in OURS:
        url = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        response = client.get(url, follow=True)
        assert response.status_code == 403, url
    client.force_login(admin)
    assert client.get("/admin/").status_code == 200


def test_the_lock_holds_what_pyproject_asks_for_with_hashes_and_without_a_registry() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = {
        name.lower().replace("_", "-")
        for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.MULTILINE)
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.split(r"[\[<>=; ]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names <= locked
    assert lock.count("==") <= lock.count("--hash=sha256:")
    assert "://" not in lock
    assert "/" not in lock.replace("sys_platform", "").split("--hash")[0]


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_stay_small(file: Path) -> None:
    source = file.read_text()
    if "migrations" in file.parts:
        return
    assert source.count("\n") <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name


def test_docstrings_name_what_they_stand_at() -> None:
    files = [
        file
        for place in (
            "apps",
            "izzysite",
            "cli",
            "integrations",
            "deploy",
            "benchmarks",
            "scripts",
            "tests",
        )
        for file in (ROOT / place).rglob("*.py")
    ]
    assert len(files) > 500
    assert [
        str(file) for file in files if re.search(r'"{3}(Who|What|So many)\b', file.read_text())
    ] == []
