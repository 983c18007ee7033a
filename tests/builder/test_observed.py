"""A build leaves something for those who run Izzy: its figures, and spans in the trace of the build."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.builder.runner.pool import BuildPool
from apps.core import traces
from apps.core.db.pool import in_db
from apps.core.metrics import processes
from apps.core.metrics.exposition import metrics_text
from tests.builder.scripts import DICE, register, write
from tests.builder.test_building import request_build
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.otlp_server import OtlpServer, otlp_server
from tests.waiting import until


@pytest.fixture
def collector(settings: Settings) -> Iterator[OtlpServer]:
    with otlp_server() as server:
        settings.IZZY_OTEL_ENDPOINT = server.url
        traces.traces_open("worker")
        yield server
        traces.traces_close()


@pytest.fixture
def _figures(settings: Settings, tmp_path: Path) -> Iterator[None]:
    settings.IZZY_DATA_DIR = tmp_path
    processes.metrics_open()
    yield
    processes.metrics_close()


@pytest.mark.usefixtures("_figures")
async def test_a_build_is_counted_and_traced_without_its_code(
    alice: User, model: AnthropicServer, pool: BuildPool, collector: OtlpServer
) -> None:
    build = await in_db(request_build, alice)
    model.add(write(), register())

    await pool.idle()

    async def figures() -> str:
        return (await in_db(metrics_text))[0].decode()

    async def sandbox_gone() -> bool:  # it is closed while the build's end is told already
        return 'izzy_sandbox_seconds_count{backend="bubblewrap",purpose="build"} 1.0' in await figures()

    await until(sandbox_gone)
    text = await figures()
    assert 'izzy_builds_total{outcome="ok",state="done"} 1.0' in text
    assert 'izzy_sandbox_runs_total{backend="bubblewrap",outcome="ok"}' in text
    traces.traces_close()
    (span,) = collector.named("build")
    assert span.attributes["izzy.build"] == str(build.pk)
    of_build = [each for each in collector.spans if each.trace == span.trace]
    assert {"sandbox", "execute_tool write_file", "execute_tool register_capability"} <= {
        each.name for each in of_build
    }
    model_calls = [each for each in of_build if each.attributes.get("izzy.purpose") == "builder"]
    assert len(model_calls) == 2
    assert {each.parent for each in model_calls} == {span.id}
    assert DICE.strip().splitlines()[0].encode() not in b"".join(collector.bodies)
    assert not [each for each in collector.spans if "dice_roller" in str(each.attributes)]
