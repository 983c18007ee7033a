"""The page for an error on the server: it needs no template, and looks like Izzy all the same."""

import re

from django.contrib.staticfiles import finders
from django.test import RequestFactory

from izzysite.errors import server_error


def test_the_page_says_what_happened_and_leads_back() -> None:
    answer = server_error(RequestFactory().get("/memory/"))
    page = answer.content.decode()
    assert answer.status_code == 500
    assert "The server met an error it did not expect;" in page
    assert '<a class="btn btn-primary btn-block" href="/">' in page


def test_who_sent_a_form_is_led_back_to_it_and_a_part_of_a_page_gets_the_sentence_alone() -> None:
    page = server_error(RequestFactory().post("/memory/")).content.decode()
    assert "What you wrote is still there" in page
    part = server_error(RequestFactory().post("/memory/", headers={"HX-Request": "true"}))
    assert part["Content-Type"] == "text/plain"
    assert part.content.decode().startswith("The server met an error it did not expect;")


def test_its_style_sheets_exist() -> None:
    page = server_error(RequestFactory().get("/")).content.decode()
    sheets = re.findall(r'href="/static/([^"]+\.css)"', page)
    assert len(sheets) == 4
    assert [sheet for sheet in sheets if finders.find(sheet) is None] == []


def test_programs_get_the_usual_shape() -> None:
    answer = server_error(RequestFactory().get("/api/v1/memories/"))
    assert b'"code": "server_error"' in answer.content
