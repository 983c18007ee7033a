"""Two real web processes leave something for those who run them: lines of JSON, figures and spans, with ids and without content."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from benchmarks._network import WebSocket
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.otlp_server import OtlpServer, SpanSeen, otlp_server
from tests.peers.site import Site
from tests.waiting import PATIENCE

pytestmark = pytest.mark.long

FIGURES = "a-token-for-the-figures"
SAID = ("quokka", "heliotrope", "key-of-the-model", "okapi", FIGURES)


@dataclass(frozen=True)
class Left:
    """Observations of one chat message at the first process, searches at the second, and a socket that was open."""

    lines: list[dict[str, Any]]
    text: str
    figures: dict[str, float]
    collector: OtlpServer
    answer: dict[str, Any]
    request_id: str

    def line(self, kind: str, **fields: object) -> dict[str, Any]:
        found = [line for line in self.lines if line["logger"] == f"apps.activity.{kind}"]
        (one,) = [line for line in found if fields.items() <= line.items()]
        return one

    def span(self, name: str) -> SpanSeen:
        return self.collector.named(name)[0]


def figures_of(site: Site, port: int) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {FIGURES}"}
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", headers=headers, timeout=PATIENCE).text
    pairs = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    folder = tmp_path_factory.mktemp("observed")
    with AnthropicServer.in_thread(turns_only=True) as model, otlp_server() as collector:
        model.add(reply(tool("memory_save", {"content": "Likes the heliotrope"})), reply("Noted."))
        site = Site(
            folder,
            processes=2,
            IZZY_LOG_FORMAT="json",
            IZZY_LOG_LEVEL="DEBUG",
            IZZY_METRICS_TOKEN=FIGURES,
            IZZY_OTEL_ENDPOINT=collector.url,
            OTEL_EXPORTER_OTLP_HEADERS="x-key=abc",
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="key-of-the-model",
        )
        first, second = site.ports
        try:
            with site.client(first) as client:
                message = {"message": "The quokka likes the heliotrope."}
                answer = client.post("/api/v1/chat/", json=message)
                client.get("/api/v1/memories/", params={"q": "okapi"})
            with site.client(second) as client:
                client.post("/api/v1/search/", json={"query": "okapi"})
                client.get("/okapi/quokka")

            async def with_socket() -> dict[str, float]:
                socket = await WebSocket.connect("127.0.0.1", first, "/ws/chat/", site.headers)
                try:
                    return await asyncio.to_thread(figures_of, site, second)
                finally:
                    socket.close()

            figures = asyncio.run(with_socket())
        finally:
            site.close()
        text = site.log.read_text()
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        yield Left(lines, text, figures, collector, answer.json(), answer.headers["x-request-id"])


def test_every_line_is_json_and_says_whose_it_is(left: Left) -> None:
    assert [line for line in left.text.splitlines() if not line.startswith("{")] == []
    assert all({"time", "level", "logger", "message", "process"} <= line.keys() for line in left.lines)
    request = left.line("request", route="api/v1/chat/")
    assert request["request"] == left.request_id
    assert (request["method"], request["status"]) == ("POST", 200)
    turn = left.line("turn")
    assert turn["turn"] == left.answer["turn"]
    assert turn["conversation"] == left.answer["conversation"]
    assert turn["user"] == request["user"]
    assert "request" not in turn


def test_neither_log_nor_spans_nor_figures_hold_what_was_said(left: Left) -> None:
    spans = b"".join(left.collector.bodies)
    assert [word for word in SAID if word in left.text] == []
    assert [word for word in SAID if word.encode() in spans] == []
    assert [word for word in SAID if word in json.dumps(left.figures)] == []


def test_the_figures_of_one_process_stand_at_the_other(left: Left) -> None:
    figures = left.figures
    chat = 'izzy_requests_total{method="POST",route="api/v1/chat/",status="200"}'
    search = 'izzy_requests_total{method="POST",route="api/v1/search/",status="200"}'
    assert (figures[chat], figures[search]) == (1, 1)
    assert figures['izzy_requests_total{method="GET",route="unmatched",status="404"}'] == 1
    assert figures['izzy_turns_total{state="done"}'] == 1
    assert figures["izzy_turn_first_token_seconds_count"] == 1
    assert figures['izzy_tool_calls_total{outcome="ok",tool="memory_save"}'] == 1
    assert figures["izzy_websockets"] == 1
    assert figures["izzy_index_bytes"] > 0
    assert figures["izzy_search_seconds_count"] >= 2
    tokens = [value for name, value in figures.items() if name.startswith("izzy_model_tokens_total")]
    assert sum(tokens) > 0
    calls = [name for name in figures if name.startswith("izzy_model_calls_total")]
    assert any('purpose="chat"' in name and 'outcome="ok"' in name for name in calls)


def test_model_and_tool_calls_are_spans_of_their_turn(left: Left) -> None:
    turn = left.span("turn")
    assert turn.attributes["izzy.turn"] == left.answer["turn"]
    asked = [span for span in left.collector.spans if span.name.startswith("chat ")]
    asked = [span for span in asked if span.attributes["izzy.purpose"] == "chat"]
    assert len(asked) == 2
    called = left.span("execute_tool memory_save")
    assert {span.trace for span in [*asked, called]} == {turn.trace}
    assert {span.parent for span in [*asked, called]} == {turn.id}
    assert called.attributes["gen_ai.operation.name"] == "execute_tool"
    assert called.attributes["gen_ai.tool.name"] == "memory_save"


def test_a_model_call_is_described_by_the_names_for_generative_ai(left: Left) -> None:
    spans = [span for span in left.collector.spans if span.name.startswith("chat ")]
    last = next(span for span in spans if span.attributes["izzy.purpose"] == "chat")
    assert last.attributes["gen_ai.operation.name"] == "chat"
    assert last.attributes["gen_ai.provider.name"] == "custom"
    assert last.name == f"chat {last.attributes['gen_ai.request.model']}"
    assert last.attributes["gen_ai.usage.input_tokens"] > 0
    assert last.attributes["gen_ai.usage.output_tokens"] > 0
    assert last.attributes["gen_ai.response.finish_reasons"] == ["tool_use"]
    assert last.attributes["gen_ai.conversation.id"] == left.answer["conversation"]
    assert last.resource["service.name"] == "izzy"
    assert last.resource["izzy.role"] == "web"


def test_a_search_is_a_span_of_its_request(left: Left) -> None:
    request = left.span("POST api/v1/search/")
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["http.route"] == "api/v1/search/"
    assert re.fullmatch(r"[0-9a-f]{16}", request.attributes["izzy.request"])
    assert request.id in {span.parent for span in left.collector.named("search")}


def test_what_opentelemetry_itself_is_told_counts(left: Left) -> None:
    assert all(headers["x-key"] == "abc" for headers in left.collector.headers)
