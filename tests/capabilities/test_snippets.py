"""Code of an answer that the user has run once."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.models import Execution

pytestmark = pytest.mark.django_db(transaction=True)


def run(client: Client, code: object) -> tuple[int, dict[str, object]]:
    answer = client.post("/api/v1/run/", {"code": code}, content_type="application/json")
    return answer.status_code, answer.json()


@pytest.mark.usefixtures("real_sandbox")
def test_it_runs_without_network_and_secrets_and_leaves_no_row(
    alice: User, api: Callable[..., Client]
) -> None:
    user_secret_set(user_id=alice.pk, name="HERON_KEY", value="a-secret-of-alices")
    client = api(alice)
    status, done = run(client, "import os\nprint(os.environ.get('HERON_KEY'))\n20 + 22")
    assert (status, done["ok"], done["stdout"]) == (200, True, "None\n42")
    assert run(client, "    eggs = 20\n    eggs + 22\n")[1]["stdout"] == "42"
    _, failed = run(client, "import socket\nsocket.create_connection(('192.0.2.1', 80), 2)")
    assert failed["ok"] is False
    assert "Error" in str(failed["error"])
    assert not Execution.objects.for_user(alice).exists()


def test_where_nothing_can_run_a_sentence_says_why(
    alice: User, api: Callable[..., Client], settings: Settings
) -> None:
    settings.IZZY_SANDBOX = "none"
    status, answer = run(api(alice), "1")
    assert status == 503
    assert "switched off" in str(answer["message"])


def test_code_that_is_no_text_or_too_long_is_refused_and_reading_is_not_enough(
    alice: User, api: Callable[..., Client]
) -> None:
    assert run(api(alice), 7)[0] == 400
    assert run(api(alice), "x" * 50_001)[0] == 413
    assert run(api(alice, "read"), "1")[0] == 403
