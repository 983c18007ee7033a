"""Turns and builds that the command line follows go on where the server starts anew meanwhile."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from izzy_cli import patience
from izzy_cli.client import Answer
from izzy_cli.commands import builds
from izzy_cli.errors import ConnectionLost, Exit, Problem
from izzy_cli.turns import Printer, Talk
from tests.cli.izzy import Izzy

PLACE = "0199aa00-0000-7000-8000-000000000000"
BUILD = "0199aa00-0000-7000-8000-000000000001"
GONE = "Izzy does not answer."


def answer(**fields: Any) -> Answer:
    return Answer(200, json.dumps(fields).encode())


def words(seq: int) -> Answer:
    return answer(type="text_delta", seq=seq, text=f"word{seq} ", conversation=PLACE)


def message(number: int) -> Answer:
    payload = {"text": f"step {number}"}
    return answer(build=BUILD, id="x", number=number, type="progress", payload=payload, read=True)


END = answer(type="response", seq=9, conversation=PLACE, notice=None)
BROKEN = "the connection breaks"
REFUSED = "the server refuses it"
Step = list[Answer | str]


class Restarting:
    """A client whose streams go as `script` says: answers that come, then what is raised."""

    def __init__(self, *script: Step, states: tuple[str, ...] = ()) -> None:
        self.script = list(script)
        self.states = list(states)
        self.asked: list[tuple[str, Any, Mapping[str, str] | None]] = []

    @contextmanager
    def events(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[Answer]]:
        self.asked.append((path, body, headers))
        step = self.script.pop(0)
        if step[0] == REFUSED:
            raise Problem(GONE, Exit.UNREACHABLE)

        def come() -> Iterator[Answer]:
            for piece in step:
                if isinstance(piece, str):
                    raise ConnectionLost("The connection broke.")
                yield piece

        yield come()

    def get(self, path: str, params: object = None) -> Answer:
        return answer(name="tool", state=self.states.pop(0), error=None)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST_PAUSE", 0.0)
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.0)


def talk(client: Any, conversation: str | None = None) -> Talk:
    return Talk(client, Printer(), conversation)


def test_an_answer_goes_on_where_the_server_started_anew(capsys: pytest.CaptureFixture[str]) -> None:
    client = Restarting([words(1), BROKEN], [REFUSED], [REFUSED], [words(1), words(2), END])
    talk(client).say("Hello")
    said = capsys.readouterr()
    assert said.out.split() == ["word1", "word2"]
    assert said.err.count(patience.BROKEN) == 1
    assert len({body["client_id"] for _, body, _ in client.asked}) == 1


def test_a_turn_that_was_answered_is_followed_by_its_message() -> None:
    asks = {"id": "q", "text": "Which?"}
    question = answer(type="response", seq=3, conversation=PLACE, notice=None, pending_question=asks)
    client = Restarting([question], [words(4), BROKEN], [REFUSED], [END])
    talking = talk(client)
    with pytest.raises(Problem, match="Which"):
        talking.say("Choose")
    talking.answer("red")
    assert [path for path, _, _ in client.asked] == [
        "chat/",
        f"conversations/{PLACE}/answer/",
        "chat/",
        "chat/",
    ]


@pytest.mark.parametrize(
    ("script", "act"),
    [
        ([[REFUSED]], lambda talking: talking.say("Hello")),
        ([[REFUSED]], lambda talking: talking.answer("red")),
        ([[words(1), BROKEN]], lambda talking: talking.answer("red")),
    ],
    ids=["a server that never answered", "nor one to an answer", "an answer without its message"],
)
def test_what_cannot_be_gone_on_with_ends_at_once(
    script: list[Step], act: Callable[[Talk], None]
) -> None:
    with pytest.raises(Problem) as raised:
        act(talk(Restarting(*script), PLACE))
    assert raised.value.exit_code == Exit.UNREACHABLE
    assert ("goes on without you" in raised.value.message) == (len(script[0]) == 2)


def test_a_server_that_stays_away_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RESTART_SECONDS", -1)
    client = Restarting([words(1), BROKEN], [REFUSED])
    with pytest.raises(Problem) as raised:
        talk(client).say("Hello")
    assert f"izzy chat -c {PLACE}" in raised.value.message


def test_nor_one_that_breaks_off_every_time() -> None:
    step: Step = [words(1), BROKEN]
    with pytest.raises(Problem) as raised:
        talk(Restarting(*[step] * (patience.WAITS + 2))).say("Hello")
    assert "goes on without you" in raised.value.message


def test_a_build_is_followed_past_a_restart(
    izzy: Izzy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Restarting(
        [message(1), BROKEN], [REFUSED], [message(2)], [message(3)], states=("running", "done")
    )
    monkeypatch.setattr(builds, "connect", lambda: client)
    done = izzy.run("builds", "follow", BUILD).ok()
    assert done.text == "· step 1\n· step 2\n· step 3\ntool: done\n"
    assert done.err.count(patience.BROKEN) == 2
    assert [headers["Last-Event-ID"] for _, _, headers in client.asked if headers] == list("0112")
