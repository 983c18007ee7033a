"""`--json` is what the server answers, and that is what OpenAPI describes."""

import json
from typing import Any

import pytest

from tests.cli.izzy import Done, Izzy
from tests.site.test_described import operation, problems

Case = tuple[list[str], str, str, str]
NOTE = "api/v1/memories/<str:memory_id>/"

CASES: list[Case] = [
    (["status"], "", "GET", "api/v1/me/"),
    (["search", "shellfish"], "", "POST", "api/v1/search/"),
    (["context", "What can I not eat, shellfish?"], "", "POST", "api/v1/context/"),
    (["save", "-t", "food", "-k", "fact", "-i", "4"], "Likes dill.", "POST", "api/v1/memories/"),
    (["list", "--tag", "food", "--order", "importance"], "", "GET", "api/v1/memories/"),
    (["show", "{note}"], "", "GET", NOTE),
    (["show", "{note}", "--history"], "", "GET", f"{NOTE}history/"),
    (["show", "{note}", "--links"], "", "GET", f"{NOTE}related/"),
]


def answers(done: Done) -> list[Any]:
    return [json.loads(line) for line in done.ok().text.splitlines()]


def saved(izzy: Izzy, text: str = "Allergic to shellfish", *more: str) -> str:
    (note,) = answers(izzy.run("save", text, *more, "--json"))
    return str(note["id"])


@pytest.mark.parametrize(
    ("arguments", "given", "method", "path"), CASES, ids=lambda case: str(case)[:40]
)
def test_every_answer_is_as_openapi_describes_it(
    izzy: Izzy, arguments: list[str], given: str, method: str, path: str
) -> None:
    note = saved(izzy)
    done = izzy.run(*(word.format(note=note) for word in arguments), "--json", given=given)
    found = answers(done)
    assert found
    responses = operation(path, method)["responses"]
    (schema,) = [
        answer["content"]["application/json"]["schema"]
        for status, answer in responses.items()
        if status.startswith("2")
    ]
    assert [problem for answer in found for problem in problems(schema, answer)] == []
