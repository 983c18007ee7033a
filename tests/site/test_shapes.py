"""One class per shape: each endpoint's input is validated and its output dumped by the class that OpenAPI shows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from apps.accounts.models import User
from apps.core.http.rest import Operation
from apps.core.http.shapes import OpenInput, Page, Query, Shape
from tests.site.belongings import Belongings
from tests.site.routes import Route, all_routes, groups
from tests.site.test_bad_input import described, undone, url_of
from tests.site.test_described import problems

pytestmark = pytest.mark.django_db

REST = [route for route in all_routes() if route.path.startswith("api/v1/")]
METHODS = ("get", "post", "put", "patch", "delete")

PLAIN = {
    "GET /api/v1/stats/": "no shape: the apps choose the names of their figures, which are counted for some 5 ms",
}
"""Endpoints that answer plain dicts, and why. No bulk path is among them: notes, messages and search results are dumped
by their classes, which takes no longer than dicts built by hand (`manage.py benchmark shapes`)."""
NO_JSON = {
    "GET /api/v1/builds/{build_id}/events/",
    "GET /api/v1/capabilities/{capability}/zip/",
    "GET /api/v1/export/",
    "GET /api/v1/attachments/{attachment_id}/content/",
}
"""A stream of `BuilderMessageOutput`, an archive, what is taken out, and files."""


def template(route: Route) -> str:
    return "/" + route.path.replace("<str:", "{").replace(">", "}")


def operations(routes: list[Route], hers: Belongings) -> Iterator[tuple[Route, str, Operation]]:
    """Each method of these addresses with its shapes; one that names none fails."""
    for route in routes:
        view: Any = resolve(url_of(route, hers)).func
        for method in METHODS:
            if handler := getattr(view.view_class, method, None):
                yield route, method, handler.operation


def content(part: dict[str, Any]) -> str:
    """The name of the component that a body or an answer is, "" for none."""
    schema: dict[str, Any] = part.get("content", {}).get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).rpartition("/")[2]


@pytest.mark.parametrize("routes", groups(REST))
def test_openapi_shows_the_shapes_of_each_operation(routes: list[Route], hers: Belongings) -> None:
    for route, method, shapes in operations(routes, hers):
        shown = described()["paths"][template(route)][method]
        name = f"{method.upper()} {template(route)}"
        body = content(shown.get("requestBody", {})).removeprefix("Patched").removesuffix("Request")
        assert body == (shapes.body.__name__ if shapes.body else ""), name
        answers = {content(answer) for status, answer in shown["responses"].items() if status < "300"}
        assert answers == {shapes.answer.__name__ if shapes.answer else ""}, name
        asked = {each["name"] for each in shown.get("parameters", []) if each["in"] == "query"}
        pages = {"page", "page_size"} if shapes.answer and issubclass(shapes.answer, Page) else set()
        assert asked == pages | (set(shapes.query.model_fields) if shapes.query else set()), name
        no_shape = method != "delete" and shapes.answer is None and "204" not in shown["responses"]
        assert no_shape == (name in {*PLAIN, *NO_JSON}), name


@pytest.mark.parametrize("routes", groups(REST))
def test_what_comes_in_is_read_by_the_shape_that_is_shown(
    routes: list[Route],
    hers: Belongings,
    sign_in: Callable[[User], Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[type[OpenInput]] = []
    inherited: Any = OpenInput.read.__func__  # type: ignore[attr-defined]  # a class method's function

    def noted(cls: type[OpenInput], value: object) -> Any:
        read.append(cls)
        return inherited(cls, value)

    monkeypatch.setattr(OpenInput, "read", classmethod(noted))
    client = sign_in(hers.owner)
    for route, method, shapes in operations(routes, hers):
        if shapes.body is None and shapes.query is None:
            continue
        read.clear()
        with undone():
            answer = client.generic(
                method.upper(), url_of(route, hers), b"" if shapes.query else b"[]", "application/json"
            )
        good = 204 if method == "delete" else 200
        assert answer.status_code == (good if shapes.query else 400), (method, route, answer.content)
        assert read[:1] == [shapes.query or shapes.body], (method, route)
        if shapes.query:
            assert issubclass(shapes.query, Query)


@pytest.mark.parametrize("routes", groups(REST))
def test_what_goes_out_is_dumped_by_the_shape_that_is_shown(
    routes: list[Route],
    hers: Belongings,
    sign_in: Callable[[User], Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dumped: list[tuple[type[Shape], Shape]] = []
    inherited: Any = Shape.model_validate.__func__  # type: ignore[attr-defined]  # a class method's function

    def noted(cls: type[Shape], value: object, /, **how: Any) -> Any:
        dumped.append((cls, inherited(cls, value, **how)))
        return dumped[-1][1]

    monkeypatch.setattr(Shape, "model_validate", classmethod(noted))
    client = sign_in(hers.owner)
    for route, method, shapes in operations(routes, hers):
        name = f"GET {template(route)}"
        if method != "get" or name in NO_JSON:
            continue
        dumped.clear()
        answer = client.get(url_of(route, hers)).json()
        if name in PLAIN:
            schema = described()["paths"][template(route)]["get"]["responses"]["200"]["content"]
            assert problems(schema["application/json"]["schema"], answer) == []
        else:
            shape, made = dumped[-1]
            assert (shape, made.model_dump(mode="json")) == (shapes.answer, answer), name


def test_every_endpoint_is_walked(hers: Belongings) -> None:
    """The tests above would pass over an empty list."""
    walked = list(operations(REST, hers))
    assert len(walked) == sum(map(len, described()["paths"].values())) > 60
    assert sum(shapes.body is not None for _, _, shapes in walked) > 25
    assert sum(shapes.answer is not None for _, _, shapes in walked) > 45
