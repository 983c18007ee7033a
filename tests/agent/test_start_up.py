"""Starting costs little: the SDK takes seconds to import, so nothing imports it before it is needed."""

import gc
import subprocess
import sys

import pytest
from django.conf import settings

import manage
from apps.core.registries import warmups


def modules_after(code: str) -> set[str]:
    """The modules that are loaded in a fresh process once Django is set up and `code` has run."""
    script = f"import django, sys; django.setup(); {code}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_setting_up_django_does_not_import_the_sdk() -> None:
    assert not {
        "anthropic",
        "httpx2",
        "jsonschema",
        "httpx",
        "trafilatura",
        "pypdf",
        "e2b",
    } & modules_after("pass")


def test_serving_pages_does_not_import_what_programs_are_served_with() -> None:
    assert not {"mcp", "mcp_types"} & modules_after("import izzysite.asgi, izzysite.urls")


@pytest.mark.parametrize(("kind", "answers"), [("offline", False), ("anthropic", True)])
def test_warming_up_imports_it_where_a_model_is_configured(kind: str, answers: bool) -> None:
    loaded = modules_after(
        "from apps.agent.model import client, sdk; "
        f"sdk.current_endpoint = lambda: client.Endpoint(client.ModelCall.Endpoint({kind!r})); "
        "sdk.warm_up()"
    )
    assert "jsonschema" in loaded
    assert ("anthropic" in loaded) == answers
    assert "model" in warmups


def test_garbage_is_collected_once_the_apps_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["manage.py", "shell", "-v", "0", "-c", "import gc; print(gc.isenabled())"]
    )
    manage.main()
    assert capsys.readouterr().out.strip() == "True"
    assert gc.isenabled()
