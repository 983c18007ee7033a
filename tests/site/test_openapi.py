"""The REST interface takes what its OpenAPI description says: requests made from it by schemathesis, right ones and
wrong ones, for every operation there is, about alice's own things. At length: `st run --phases coverage,fuzzing`."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import ignored_auth
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok

from apps.accounts.models import Scope, User
from apps.accounts.services import token_create
from tests.browser.server import Server
from tests.site.belongings import make_belongings
from tests.site.test_two_users import parameters

pytestmark = pytest.mark.django_db

CONFIG: dict[str, Any] = {
    "generation": {"allow-x00": False},
    "checks": {
        "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 413, 415]},
        # A row, or a state of one, that a request names need not be there.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 403, 404, 409, 413]},
    },
}
GROUPS = 4
"""The operations stand in so many groups, for processes that share the tests."""
NO_IDS = {"client"}  # parameters of addresses that name nobody's row
COVERED = 8  # requests that try the bounds of parameters, of each operation
# Addresses that look at what a value means, which no description says: a path, a time within centuries, a schema, code.
MEANT = {
    "POST /api/v1/memories/",  # that it ends after it begins
    "POST /api/v1/memories/bulk/",
    "PATCH /api/v1/memories/{memory_id}/",
    "POST /api/v1/memories/{memory_id}/supersede/",
    "GET /api/v1/memory-files/",
    "POST /api/v1/memory-files/",
    "POST /api/v1/ingest/",
    "POST /api/v1/capabilities/",
    "PATCH /api/v1/capabilities/{capability}/",  # that the name stays
    "POST /api/v1/capabilities/{capability}/run/",  # what the capability takes
    "GET /api/v1/usage/",
    "POST /api/v1/builds/",
    "POST /api/v1/context/",
    "POST /api/v1/import/",  # what a file is
    "POST /api/v1/attachments/",  # likewise
    "POST /api/v1/chat/",  # that what is replaced is in a conversation
}
SETTINGS = settings(
    max_examples=3,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=True,
)
OWN = """
import json
from apps.accounts.models import User
from apps.accounts.services import token_create
from tests.site.belongings import make_belongings
from tests.site.test_two_users import parameters
alice = User.objects.get()
token = token_create(user=alice, name="test", scopes=["write"])[1]
print("MADE", json.dumps([token, parameters(make_belongings(alice))]))
"""


@schemathesis.serializer("application/zip")
def zipped(_: Any, value: Any) -> bytes:
    """An archive that is none."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


_loaded: list[Any] = []


def described(headers: dict[str, str]) -> Any:
    """The description, the same one for all tests of a process: what was made from it for one of them serves the next."""
    if not _loaded:
        config, application = SchemathesisConfig.from_dict(CONFIG), get_wsgi_application()
        _loaded.append(
            schemathesis.openapi.from_wsgi("/api/schema/", application, config=config, headers=headers)
        )
    return _loaded[0]


class Asker:
    """Sends what is made from the description, with a token and its owner's ids, and keeps what was answered otherwise than
    described."""

    def __init__(self, token: str, ids: dict[str, list[str]]) -> None:
        self.headers = {"Authorization": f"Bearer {token}"}
        self.ids = {name: cycle(values) for name, values in ids.items()}
        self.wrong: dict[str, str] = {}
        self.statuses: set[int] = set()

    def ask(self, case: Any) -> Any:
        """Returns the answer. An id that may be any is that of something of the owner's."""
        path = case.meta.components.get(ParameterLocation.PATH) if case.meta else None
        if path is None or path.mode == GenerationMode.POSITIVE:
            for name in case.path_parameters or {}:
                assert name in self.ids, f"tell `parameters` of test_two_users what there is for {name}"
                case.path_parameters[name] = next(self.ids[name])
        response = case.call(headers=self.headers)
        self.statuses.add(response.status_code)
        name = f"{case.method} {case.operation.path}"
        is_right = case.meta is None or case.meta.generation.mode.is_positive
        is_meant = response.status_code == 400 and name in MEANT and is_right
        try:
            case.validate_response(response, headers=self.headers, excluded_checks=[ignored_auth])
        except FailureGroup as group:
            for failure in group.exceptions:
                if isinstance(failure, Failure) and not is_meant:
                    self.wrong[f"{name}: {failure.title}"] = (
                        f"{failure.message}\n{response.text[:500]}\n{case.as_curl_command()}"
                    )
        return response

    def told(self) -> str:
        return "\n\n".join(f"{name}\n{text}" for name, text in self.wrong.items())


def operations(loaded: Any, *, live: bool) -> Iterator[Any]:
    """All, but for those that stream, run a turn or a tool: these are `live`, and need a server."""
    for found in loaded.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        contents = [
            answer.get("content", {}) for answer in operation.definition.raw["responses"].values()
        ]
        types = {kind for content in contents for kind in content}
        if live == (
            operation.path.endswith("/run/") or not types <= {"application/json", "application/zip"}
        ):
            yield operation


def fuzz(operation: Any, mode: GenerationMode, send: Callable[[Any], Any]) -> None:
    @SETTINGS
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        send(case)

    one()


def send_all(operation: Any, mode: GenerationMode, send: Callable[[Any], Any]) -> None:
    """Some requests; without a body also such as try the bounds of parameters (to make those of bodies takes seconds)."""
    fuzz(operation, mode, send)
    if not operation.body:
        generation = operation.schema.config.generation_for(operation=operation)
        cases: Iterable[Any] = operation.schema.iter_coverage_cases(
            operation, generation_modes=[mode], generation_config=generation
        )
        for case in islice(cases, COVERED):
            send(case)


@pytest.fixture
def token(alice: User) -> Iterator[str]:
    """A request ends no connection: the test's transaction lives on."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield token_create(user=alice, name="test", scopes=[str(Scope.WRITE)])[1]
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("group", range(GROUPS))
def test_requests_made_from_the_description_are_taken_as_it_says(
    alice: User, token: str, group: int, mode: GenerationMode
) -> None:
    asker = Asker(token, parameters(make_belongings(alice)))
    loaded = described(asker.headers)

    def send(case: Any) -> None:
        with transaction.atomic():  # the next one finds everything as it was
            asker.ask(case)
            transaction.set_rollback(True)

    for operation in list(operations(loaded, live=False))[group::GROUPS]:
        send_all(operation, mode, send)
    assert not asker.wrong, asker.told()
    assert asker.statuses >= ({200} if mode == GenerationMode.POSITIVE else {400, 404, 405})


def test_ids_of_another_user_are_those_of_nothing(alice: User, bob: User, token: str) -> None:
    """An address that takes the id of a row answers 404, with a body that it would take."""
    hers = parameters(make_belongings(alice))
    asker = Asker(token_create(user=bob, name="test", scopes=[str(Scope.WRITE)])[1], hers)
    loaded = described(asker.headers)
    answers: dict[str, set[int]] = {}
    for operation in chain(operations(loaded, live=False), operations(loaded, live=True)):
        if {parameter.name for parameter in operation.path_parameters} - NO_IDS:

            def send(case: Any, label: str = operation.label) -> None:
                answers.setdefault(label, set()).add(asker.ask(case).status_code)

            fuzz(operation, GenerationMode.POSITIVE, send)
    assert answers
    wrong = {
        name: found
        for name, found in answers.items()
        if 404 not in found or found - ({400, 404} if name in MEANT else {404})
    }
    assert not wrong
    assert not asker.wrong, asker.told()


def test_what_streams_or_runs_answers_as_described(tmp_path: Path) -> None:
    server = Server.prepared(tmp_path)
    server.start()
    try:
        said = server.manage("shell", "-v", "0", "-c", OWN)
        made = next(line for line in said.splitlines() if line.startswith("MADE "))
        asker = Asker(*json.loads(made.removeprefix("MADE ")))
        config = SchemathesisConfig.from_dict(CONFIG)
        loaded = schemathesis.openapi.from_url(
            f"{server.url}/api/schema/", config=config, headers=asker.headers
        )
        streamed: dict[str, set[str]] = {}

        def send(case: Any) -> None:
            response = asker.ask(case)
            if response.headers.get("content-type", [""])[0].startswith("text/event-stream"):
                events = [event for event in response.text.split("\n\n") if event.startswith("event:")]
                for event in events:
                    fields = dict(line.split(": ", 1) for line in event.splitlines())
                    data = json.loads(fields["data"])
                    assert data["type"] == fields["event"]
                    streamed.setdefault(case.operation.label, set()).add(data["type"])

        message: Any = {"message": "Good morning", "stream": True}
        send(loaded["/api/v1/chat/"]["POST"].Case(body=message, media_type="application/json"))
        for operation in operations(loaded, live=True):
            for mode in GenerationMode:
                send_all(operation, mode, send)
    finally:
        server.stop()
        print(*server.output, sep="")  # shown where it fails
    assert not asker.wrong, asker.told()
    assert {"turn_queued", "turn_started"} <= streamed["POST /api/v1/chat/"]
    assert "GET /api/v1/builds/{build_id}/events/" in streamed
