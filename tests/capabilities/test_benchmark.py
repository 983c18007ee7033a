"""The benchmark of capabilities: its set of requests, and that the right tool is found."""

import pytest

from apps.accounts.models import User
from benchmarks._capability_requests import others, targets
from benchmarks.capabilities import make_capabilities, measure_found
from benchmarks.report import Report


def test_the_set_names_every_tool_once() -> None:
    names = [target.name for target in targets()] + [name for name, *_ in others()]
    assert len(targets()) == 100
    assert len(names) == len(set(names))
    assert len(names) > 1000


@pytest.mark.django_db(transaction=True)
def test_how_often_the_right_one_is_found(alice: User) -> None:
    make_capabilities(alice, 40)
    report = Report("capabilities")
    measure_found(report, alice, 40)
    plain, oblique = report.to_json()["sections"][0]["rows"]
    assert plain["requests"] == oblique["requests"] == 40
    assert plain["first 3, %"] >= 95
    assert plain["first, %"] > plain["by words, first 3, %"] - 20
    assert all(report.aims.values())
