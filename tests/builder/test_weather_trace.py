"""The whole way of a tool that was missing: looked up in vain, asked for, built with a failing first test, a package, a host
that the user allows on the page, verified, told, and used in the next turn. Each step by what the model's server was sent and
what the page got; the weather comes from a service on the loopback, the package from an index there."""

import io
import json
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.builder.models import Build, State
from apps.builder.runner.pool import BuildPool
from apps.capabilities.models import Capability, Execution, Status
from apps.capabilities.sandbox.layers import installing as packages
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.builder.scripts import Cast, code, last_result
from tests.builder.test_in_conversation import build_message, of_type, working
from tests.chat.client import Program, Socket, connected, program_of
from tests.peers.anthropic_server import AnthropicServer, reply, text, tool
from tests.peers.web_pages import WebPages

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MAIN = """import json
import urllib.request

import degreewords


def run(args: dict) -> str:
    with urllib.request.urlopen("{url}?city=" + args["city"], timeout=10) as answer:
        found = json.load(answer)
    return f"{{args['city']}}: {{degreewords.degrees(found['temperature'])}}, {{found['sky']}}"
"""
TRY = code("import importlib, main; importlib.reload(main); print(main.run({'city': 'Austin'}))")


@pytest.fixture
async def weather() -> AsyncIterator[WebPages]:
    """The weather service."""
    async with WebPages("weather.test") as web:
        web.page(
            "/v1/now?city=Austin", json.dumps({"temperature": 31, "sky": "clear"}), "application/json"
        )
        web.page("/v1/now?city=Oslo", json.dumps({"temperature": -4, "sky": "snow"}), "application/json")
        yield web


@pytest.fixture
async def index(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WebPages]:
    """A package index with one package."""
    wheel = io.BytesIO()
    name = "degreewords-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("degreewords.py", "def degrees(value):\n    return f'{value} degrees Celsius'\n")
        file.writestr(
            "degreewords-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: degreewords\nVersion: 1.0\n",
        )
        file.writestr(
            "degreewords-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr("degreewords-1.0.dist-info/RECORD", "")
    async with WebPages("127.0.0.1") as web:
        web.page("/simple/degreewords/", f'<a href="/{name}">{name}</a>')
        web.page(f"/{name}", wheel.getvalue(), "application/octet-stream")
        monkeypatch.setenv("UV_DEFAULT_INDEX", web.url("/simple/"))
        packages.package_index.cache_clear()
        yield web
        packages.package_index.cache_clear()


@pytest.fixture(autouse=True)
async def _quiet() -> AsyncIterator[None]:
    yield
    await scheduler().close()


@pytest.fixture(autouse=True)
def _places(settings: Settings, weather: WebPages, index: WebPages) -> Iterator[None]:
    settings.IZZY_PRIVATE_HOSTS = [weather.allowed, f"127.0.0.1:{index.port}"]
    settings.IZZY_BUILD_ANSWER_SECONDS = 30.0
    # A folder that sandboxes may reach, unlike pytest's own; with no layers of earlier runs.
    with tempfile.TemporaryDirectory(prefix="izzy-builds-") as folder:
        Path(folder).chmod(0o755)
        settings.IZZY_SANDBOX_DIR = folder
        yield


def cast_of(weather: WebPages) -> Cast:
    host = f"weather.test:{weather.port}"
    main = MAIN.format(url=weather.url("/v1/now"))
    request = {
        "name": "weather_lookup",
        "description": "Look up weather by city using Open-Meteo API",
        "input_schema": SCHEMA,
    }
    handed_in = {
        "files": {"main.py": main, "requirements.txt": "degreewords==1.0\n"},
        "permissions": {"hosts": [host]},
        "examples": [{"input": {"city": "Austin"}, "expect": "Austin: 31 degrees Celsius"}],
        "tags": ["weather"],
    }
    return Cast(
        chat=[
            reply(tool("lookup_capability", {"query": "weather"})),
            reply(tool("request_capability", request)),
            reply("I'm building a weather tool for you: give me just a moment!"),
            reply(tool("cap_weather_lookup", {"city": "Oslo"})),
            reply("In Oslo it snows at -4 degrees."),
        ],
        builder=[
            reply(
                text("I begin with the code."), tool("write_file", {"path": "main.py", "content": main})
            ),
            TRY,
            reply(tool("run_command", {"command": "pip install degreewords==1.0"})),
            TRY,
            reply(
                tool("report_progress", {"text": "Asking for the weather service"}),
                tool("request_network", {"hosts": [host], "why": "The weather comes from there."}),
            ),
            TRY,
            reply(tool("register_capability", handed_in)),
        ],
    )


async def test_the_weather_from_a_missing_tool_to_the_next_turn(
    alice: User, model: AnthropicServer, pool: BuildPool, weather: WebPages, index: WebPages
) -> None:
    cast = model.fallback = cast_of(weather)
    page_api = await program_of(alice)
    async with connected(alice) as socket, working(pool):
        queued = await socket.say("What's the weather in Austin?")
        promised = await socket.ended()
        question = await build_message(socket, of_type("question"))
        await allowed_on_the_page(page_api, promised["build_id"], question, weather)
        done = await build_message(socket, of_type("complete"))
        told = await socket.ended()
        await socket.say("And in Oslo?", conversation=queued["conversation"])
        answer = await socket.ended()

    looked_up_asked_and_promised(cast, socket, queued, promised)
    built_step_by_step(cast, weather, index)
    assert done["message"]["payload"] == {
        "text": "weather_lookup is ready.",
        "capability": "weather_lookup",
        "version": 1,
        "stage": "ready",
        "waits_for_approval": False,
        "verified": True,
        "problem": "",
        "hosts": [f"weather.test:{weather.port}"],
        "secrets": [],
    }
    assert told["text"].startswith("**weather_lookup** is ready. Look up weather by city")
    used_in_the_next_turn(cast, answer)
    await stands_in_the_catalog(alice, weather)


async def allowed_on_the_page(
    page_api: Program, build_id: str, question: dict[str, Any], weather: WebPages
) -> None:
    """The card's yes: to exactly the host that it showed. Until then the service was never reached."""
    payload = question["message"]["payload"]
    assert payload["kind"] == "network"
    assert payload["hosts"] == [f"weather.test:{weather.port}"]
    assert payload["why"] == "The weather comes from there."
    assert weather.asked == []
    body = {"id": question["message"]["id"], "decision": "allow"}
    answered = await page_api.post(f"builds/{build_id}/answer/", body)
    assert answered.status_code == 200
    assert answered.json()["hosts"] == payload["hosts"]


def looked_up_asked_and_promised(
    cast: Cast, socket: Socket, queued: dict[str, Any], promised: dict[str, Any]
) -> None:
    first, second, third = cast.chat_requests[:3]
    assert "cap_weather_lookup" not in json.dumps(first["tools"])
    assert json.loads(last_result(second)["content"])["found"] is False
    requested = json.loads(last_result(third)["content"])
    assert requested["status"] == "building"
    assert requested["build_id"] == promised["build_id"]
    assert promised["text"].startswith("I'm building a weather tool")
    assert [call["name"] for call in promised["tool_calls"]] == [
        "lookup_capability",
        "request_capability",
    ]
    assert socket.types(queued["turn"])[:2] == ["turn_queued", "turn_started"]


def built_step_by_step(cast: Cast, weather: WebPages, index: WebPages) -> None:
    brief, *rounds = cast.builder_requests
    said = brief["messages"][0]["content"][0]["text"]
    assert "Name: weather_lookup" in said
    assert "What's the weather in Austin?" in said
    assert brief["model"] == "claude-sonnet-5-5"
    assert len(rounds) == 6, "after registration no further round is asked for"
    wrote, failed, installed, refused, granted, worked = (last_result(request) for request in rounds)
    assert wrote["content"].startswith("Wrote main.py")
    assert failed["is_error"]
    assert "No module named 'degreewords'" in failed["content"]
    assert "exit code 0" in installed["content"]
    assert refused["is_error"]
    assert "request_network" in refused["content"], "the refused connection names the tool to ask with"
    assert "Allowed by the user" in granted["content"]
    assert "Austin: 31 degrees Celsius, clear" in worked["content"]
    assert [asked.path for asked in index.asked if asked.path.endswith(".whl")]
    assert len(weather.asked) >= 2, "once while it was tried, once by Izzy itself"


def used_in_the_next_turn(cast: Cast, answer: dict[str, Any]) -> None:
    fourth, fifth = cast.chat_requests[3:5]
    listed = fourth["tools"][-1]
    assert listed["name"] == "cap_weather_lookup"
    assert listed["description"].startswith("[Capability] Look up weather")
    assert "Oslo: -4 degrees Celsius, snow" in last_result(fifth)["content"]
    assert answer["text"] == "In Oslo it snows at -4 degrees."


async def stands_in_the_catalog(alice: User, weather: WebPages) -> None:
    def read() -> tuple[Build, Capability, list[Execution]]:
        capability = Capability.objects.for_user(alice).select_related("current").get()
        return Build.objects.for_user(alice).get(), capability, list(Execution.objects.for_user(alice))

    build, capability, runs = await in_db(read)
    assert (build.state, build.version, build.hosts) == (State.DONE, 1, [f"weather.test:{weather.port}"])
    assert capability.status == Status.ACTIVE
    assert capability.current is not None
    assert capability.current.is_approved
    assert sorted(capability.current.checksums) == [
        "RUN.md",
        "main.py",
        "manifest.json",
        "requirements.txt",
    ]
    assert [run.state for run in runs] == ["ok"]
