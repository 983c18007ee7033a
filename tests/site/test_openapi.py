"""What the REST interface takes is what its OpenAPI description says: requests made from it by schemathesis, right ones and
wrong ones, for every operation."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import ignored_auth
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok

from apps.accounts.models import Scope, User
from apps.accounts.services import token_create

pytestmark = pytest.mark.django_db

CONFIG: dict[str, Any] = {
    "generation": {"allow-x00": False},
    "checks": {
        "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 413, 415]},
        # A row, or a state of one, that a request names need not be there.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 403, 404, 409, 413]},
    },
}
STREAMED_OR_SLOW = r"/(chat|events|retry|answer|approve|run)/$"
# Addresses that look at what a value means, which no description says: a path, a time within centuries, a schema, code.
MEANT = {
    "POST /api/v1/memories/",  # that it ends after it begins
    "POST /api/v1/memories/bulk/",
    "PATCH /api/v1/memories/{memory_id}/",
    "GET /api/v1/memory-files/",
    "POST /api/v1/memory-files/",
    "POST /api/v1/ingest/",
    "POST /api/v1/capabilities/",
    "GET /api/v1/usage/",
    "POST /api/v1/builds/",
    "POST /api/v1/context/",
}
SETTINGS = settings(
    max_examples=5,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=True,
)


@pytest.fixture
def token(alice: User) -> Iterator[str]:
    """A request ends no connection: the test's transaction lives on."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield token_create(user=alice, name="test", scopes=[str(Scope.WRITE)])[1]
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(
    "paths", ["memories", "memory-", "c[ah]|builds", "[a-z]*t(ions|ext|s)|ingest|search|usage"]
)
def test_requests_made_from_the_description_are_taken_as_it_says(
    token: str, paths: str, mode: GenerationMode
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    loaded = schemathesis.openapi.from_wsgi(
        "/api/schema/",
        get_wsgi_application(),
        config=SchemathesisConfig.from_dict(CONFIG),
        headers=headers,
    )
    wanted = loaded.include(path_regex=f"^/api/v1/({paths})").exclude(path_regex=STREAMED_OR_SLOW)
    wrong: dict[str, str] = {}
    for found in wanted.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()

        @SETTINGS
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered(case: Any) -> None:
            try:
                response = case.call(headers=headers)
                case.validate_response(response, excluded_checks=[ignored_auth])
            except FailureGroup as group:
                for failure in group.exceptions:
                    if isinstance(failure, Failure) and (
                        response.status_code != 400
                        or f"{case.method} {case.path}" not in MEANT
                        or mode != GenerationMode.POSITIVE
                    ):
                        wrong[f"{case.method} {case.path}: {failure.title}"] = (
                            f"{failure.message}\n{response.text[:500]}\n{case.as_curl_command()}"
                        )

        answered()
    assert not wrong, "\n\n".join(f"{name}\n{text}" for name, text in wrong.items())
