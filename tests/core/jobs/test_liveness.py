"""A process that no longer answers is noticed, ended and started again, and nothing else is."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from django.conf import settings
from django.utils import timezone

from apps.core.health import State, check_processes, process_ended
from apps.core.jobs.supervisor import (
    Answer,
    HeartbeatProbe,
    Liveness,
    Patience,
    WebProbe,
    processor_seconds,
    seconds_shown,
)
from apps.core.models import InstanceState
from tests.peers.ports import free_port
from tests.waiting import PATIENCE, eventually

TICK = 0.25


class Process:
    """A process as far as its supervisor sees it, with a clock that stands until it is moved on."""

    descriptors: list[int] = []
    environment: dict[str, str] = {}

    def __init__(self) -> None:
        self.now, self.says, self.load = 1000.0, Answer.YES, 0.0
        self.asked: list[float] = []
        self.used = 0.0
        self.liveness = Liveness(self, Patience(), lambda: self.used)
        self.liveness.begin(self.now)

    def ask(self) -> None:
        self.asked.append(self.now)

    def answer(self) -> Answer:
        return self.says

    def goes_on(self, seconds: float) -> str:
        """Lives on for so long; why it is to be ended meanwhile, "" where it is not."""
        end = self.now + seconds
        while self.now < end:
            self.now += TICK
            self.used += TICK * self.load
            if reason := self.liveness.look(self.now):
                return reason
        return ""


def test_a_process_that_answers_is_asked_every_five_seconds_and_not_in_its_first_minute() -> None:
    process = Process()
    process.load = 1.0
    assert process.goes_on(100) == ""
    assert process.asked == [1060 + 5 * number for number in range(9)]


def test_a_busy_process_is_a_frozen_one_after_six_questions_of_ten_seconds() -> None:
    process = Process()
    assert process.goes_on(70) == ""
    process.says, process.load = Answer.NOT_YET, 0.5
    assert process.goes_on(60) == ""
    reason = process.goes_on(11)
    assert "did not answer for 6" in reason
    assert "s of the processor" in reason


def test_an_idle_one_has_two_minutes() -> None:
    process = Process()
    process.goes_on(70)
    process.says, process.load = Answer.NOT_YET, 0.1
    assert process.goes_on(115) == ""
    assert "did not answer for 1" in process.goes_on(15)


def test_each_answer_starts_the_count_anew() -> None:
    process = Process()
    process.load = 1.0
    process.goes_on(70)
    for _ in range(5):
        process.says = Answer.NOT_YET
        assert process.goes_on(55) == ""
        process.says = Answer.YES
        assert process.goes_on(6) == ""


@pytest.mark.parametrize("asleep", [10.0, 36_000.0])
def test_nobody_is_ended_after_the_machine_slept(asleep: float) -> None:
    """Also where the clock went on meanwhile, as while a container was paused."""
    process = Process()
    process.goes_on(70)
    process.says, process.load = Answer.NOT_YET, 1.0
    assert process.goes_on(55) == ""
    process.now += asleep
    assert process.goes_on(60) == ""
    assert "did not answer" in process.goes_on(11)


def test_one_that_still_loads_is_no_frozen_one_and_is_asked_later_after_each_end() -> None:
    process = Process()
    process.says, process.load = Answer.NOBODY, 1.0
    assert process.goes_on(175) == ""
    assert "did not answer" in process.goes_on(15)
    begun = process.now
    process.liveness.begin(begun)
    assert process.goes_on(235) == ""
    assert process.asked[-1] >= begun + 120
    process.says = Answer.YES
    process.goes_on(10)
    process.liveness.begin(process.now)
    begun, process.asked = process.now, []
    process.goes_on(64)
    assert process.asked == [begun + 60]


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(400)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_whatever_a_web_server_says_is_an_answer(page: int) -> None:
    probe = WebProbe("127.0.0.1", page)
    for _ in range(2):
        probe.ask()
        assert eventually(lambda: probe.answer() is not Answer.NOT_YET and probe.answer())
        probe.ask()
        eventually(lambda: probe.answer() is Answer.YES)


def test_one_that_takes_the_connection_and_is_silent_has_not_answered() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        probe = WebProbe("127.0.0.1", listening.getsockname()[1])
        probe.ask()
        connection, _ = listening.accept()
        with closing(connection):
            eventually(
                lambda: probe.answer() is Answer.NOT_YET and connection.recv(1000, socket.MSG_DONTWAIT)
            )
            assert probe.answer() is Answer.NOT_YET
    probe.ask()
    eventually(lambda: probe.answer() is Answer.NOBODY)


def test_a_heartbeat_from_before_the_question_is_no_answer() -> None:
    probe = HeartbeatProbe()
    os.write(probe.descriptors[0], b"..")
    probe.ask()
    assert probe.answer() is Answer.NOT_YET
    os.write(probe.descriptors[0], b".")
    assert probe.answer() is Answer.YES


def test_the_processor_time_of_a_process_is_known_with_and_without_proc() -> None:
    before = processor_seconds(os.getpid())
    assert before is not None
    eventually(lambda: sum(range(10**6)) and (processor_seconds(os.getpid()) or 0) > before)
    assert processor_seconds(2**22 + 1) is None
    assert [seconds_shown(text) for text in (" 0:12.34\n", "01:02:03", "2-01:00:00")] == [
        12.34,
        3723,
        176_400,
    ]
    with pytest.raises(ValueError):
        seconds_shown("")


@pytest.mark.django_db
def test_the_doctor_says_for_a_day_which_process_was_ended_and_why() -> None:
    assert check_processes().ok
    process_ended("web", "it did not answer for 64 s and used 58 s of the processor meanwhile")
    process_ended("web", "it did not answer for 61 s and used 60 s of the processor meanwhile")
    result = check_processes()
    assert result.state == State.BROKEN
    assert "The web process was ended" in result.message
    assert "2 times" in result.message
    assert "61 s" in result.message
    state = InstanceState.objects.get(key="ended")
    state.value["web"]["at"] = (timezone.now() - timedelta(days=2)).isoformat()
    state.save()
    assert check_processes().ok


SUPERVISE = """
import sys
from pathlib import Path
from apps.core.jobs.supervisor import HeartbeatProbe, Patience, WebProbe
from apps.core.jobs.supervisor import Supervisor
patience = Patience(first=.5, every=.2, answer=.5, failures=3, busy=.5, longest=200, stacks=5, end=.5)
note = lambda name, reason: print("noted", name, flush=True)
say = lambda text: print(text, flush=True)
port = int(sys.argv[2])
supervisor = Supervisor({"web": ["web", str(port)], "worker": ["worker"]}, Path(sys.argv[1]), say, note, patience)
supervisor.start("web", WebProbe("127.0.0.1", port))
supervisor.start("worker", HeartbeatProbe())
supervisor.open_gate()
supervisor.watch()
supervisor.stop()
"""
MANAGE = """
import os, re, signal, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from apps.core.jobs import parent_watch
parent_watch.BEAT_SECONDS = .05
parent_watch.watch_parent()
parent_watch.wait_at_gate()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
name = sys.argv[1]
os.write(1, f"started {name} {os.getpid()}\\n".encode())  # in one piece: two begin at once
begun = Path(__file__).with_name(name)
def freeze_once():
    if not begun.exists():
        begun.touch()
        re.match("(a|a)*b", "a" * 100)
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        threading.Timer(.1, freeze_once).start()
    def log_message(self, *args):
        pass
if name == "web":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Page).serve_forever()
threading.Timer(2, freeze_once).start()
parent_watch.beat_for_ever()
"""


@pytest.mark.long
def test_processes_that_really_freeze_write_their_stacks_and_are_started_again(tmp_path: Path) -> None:
    """In a regular expression, which holds the interpreter's lock: no thread of theirs runs any more, nor any signal's
    handler in Python."""
    manage, log = tmp_path / "manage.py", tmp_path / "log"
    manage.write_text(MANAGE)
    command = [sys.executable, "-c", SUPERVISE, str(manage), str(free_port())]
    environment = os.environ | {"PYTHONPATH": str(settings.BASE_DIR)}
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=settings.BASE_DIR, stdout=output, stderr=output
        )
    try:
        for name in ("web", "worker"):
            eventually(lambda name=name: f"noted {name}" in log.read_text(), log.read_text)  # type: ignore[misc]
            eventually(lambda name=name: log.read_text().count(f"started {name}") > 1, log.read_text)  # type: ignore[misc]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    said = log.read_text()
    for name in ("web", "worker"):
        assert f"The {name} process is ended: it did not answer for" in said
        assert f"The {name} process ended (killed by SIGKILL)" in said
    assert said.count("in freeze_once") >= 2
    assert "Fatal Python error" not in said
