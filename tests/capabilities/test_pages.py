"""The pages of capabilities."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.models import Secret, User
from apps.accounts.secrets import secret_get
from apps.capabilities.catalog.selectors import capability_get
from apps.capabilities.catalog.versions import capability_create, capability_update
from apps.capabilities.models import Capability, Execution
from apps.capabilities.pages.run_form import RunForm
from tests.capabilities.making import GREETING, NAME_SCHEMA, draft, make

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def text_of(response: Any) -> str:
    return str(response.content.decode())


def fields(**changes: str) -> dict[str, str]:
    schema = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
    return {
        "name": "greeter",
        "description": "Greets.",
        "main": GREETING,
        "input_schema": schema,
        "tags": "a, b",
        "hosts": "",
        **changes,
    }


def test_the_empty_page_explains_what_capabilities_are(browser: Client) -> None:
    page = text_of(browser.get("/capabilities/"))
    assert "No capabilities yet" in page
    assert "/capabilities/new/" in page


def test_one_is_written_by_hand(alice: User, browser: Client) -> None:
    editor = text_of(browser.get("/capabilities/new/"))
    assert "def run(args" in editor
    answer = browser.post(
        "/capabilities/new/",
        fields(requirements="requests\r\n", examples='[{"input": {"name": "Ada"}}]'),
    )
    assert answer["Location"] == "/capabilities/greeter/"
    made = capability_get(alice.pk, "greeter")
    assert made.tags == ["a", "b"]
    assert made.current is not None
    assert made.current.examples == [{"input": {"name": "Ada"}}]
    page = text_of(browser.get("/capabilities/greeter/", follow=True))
    assert "Saved as version 1." in page
    assert 'value="Ada"' in page
    assert "greeter" in text_of(browser.get("/capabilities/"))


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_lost(alice: User, browser: Client) -> None:
    for change, said in [
        ({"name": "Bad Name"}, "must begin with a lower-case letter"),
        ({"main": "def run(:"}, "no valid Python: line 1"),
        ({"input_schema": "{"}, "This is not valid JSON"),
        ({"input_schema": '{"type": "array"}'}, "&quot;type&quot;: &quot;object&quot;"),
        ({"input_schema": '{"type": "object", "minProperties": NaN}'}, "This is not valid JSON"),
        ({"examples": '[{"input": {"name": 1e999}}]'}, "This is not valid JSON"),
        ({"examples": '[{"input": {"name": "\\ud800"}}]'}, "This contains lone surrogates"),
        ({"requirements": "-r other.txt"}, "options are not allowed"),
        ({"hosts": "https://x.org"}, "is no host"),
        ({"secrets": "lower"}, "is no name for a secret"),
    ]:
        answer = browser.post("/capabilities/new/", fields(**change))
        assert answer.status_code == 422
        assert said in text_of(answer), change
        assert "Greets." in text_of(answer)
    assert not Capability.objects.for_user(alice).exists()


def test_all_that_is_wrong_is_said_at_once(alice: User, browser: Client) -> None:
    wrong = {
        "name": ("Bad Name", "must begin with a lower-case letter"),
        "description": ("", "This field is required."),
        "tags": (", ".join(map(str, range(30))), "At most 20 tags"),
        "main": ("def run(:", "no valid Python: line 1"),
        "requirements": ("-r other.txt", "options are not allowed"),
        "input_schema": ("{", "This is not valid JSON"),
        "output_schema": ("[]]", "This is not valid JSON"),
        "hosts": ("https://x.org", "is no host"),
        "secrets": ("lower", "is no name for a secret"),
    }
    given = {name: value for name, (value, _) in wrong.items()}
    answer = browser.post("/capabilities/new/", fields(**given))
    assert answer.status_code == 422
    form = answer.context["form"]
    assert {
        name: said in str(form.errors.get(name)) for name, (_, said) in wrong.items()
    } == dict.fromkeys(wrong, True), form.errors
    assert all(f'id="id_{name}_error"' in text_of(answer) for name in wrong)
    secret = browser.post("/settings/secrets/", {"name": "lower", "value": "short"})
    assert set(secret.context["form"].errors) == {"name", "value"}
    assert not Capability.objects.for_user(alice).exists()


def test_a_run_with_mistakes_says_them_beside_the_fields(alice: User, browser: Client) -> None:
    make(alice)
    answer = browser.post("/capabilities/greeter/run/", {}, headers={"HX-Request": "true"})
    assert 'id="run-fields"' in text_of(answer)
    assert 'id="id_field-0_error"' in text_of(answer)


def test_editing_starts_from_the_files_and_makes_a_version(alice: User, browser: Client) -> None:
    make(alice, hosts=["api.example.org"])
    page = text_of(browser.get("/capabilities/greeter/edit/"))
    assert "Pass the name as people write it." in page
    assert "api.example.org" in page
    answer = browser.post(
        "/capabilities/greeter/edit/", fields(name="other", description="Greets anew.")
    )
    assert answer.status_code == 302
    changed = capability_get(alice.pk, "greeter")
    assert (changed.description, changed.current and changed.current.number) == ("Greets anew.", 2)
    versions = text_of(browser.get("/capabilities/greeter/versions/?compare=2"))
    assert "Greet somebody by name." in versions
    assert "line-add" in versions
    browser.post("/capabilities/greeter/rollback/", {"version": "1"})
    assert capability_get(alice.pk, "greeter").description == "Greet somebody by name."


def test_the_files_are_shown(alice: User, browser: Client) -> None:
    make(alice)
    page = text_of(browser.get("/capabilities/greeter/files/"))
    for name in ("main.py", "requirements.txt", "manifest.json", "RUN.md"):
        assert name in page
    assert "Pass the name as people write it." in page


def test_what_does_not_show_in_the_files_is_named(alice: User, browser: Client) -> None:
    made = make(alice)
    turned = f"{GREETING}# as \u202eyas ti\n"
    capability_update(user_id=alice.pk, capability_id=made.pk, main=turned)
    for page in ("files/", "versions/?compare=2"):
        assert "⟨1 hidden character⟩" in text_of(browser.get(f"/capabilities/greeter/{page}"))


def test_permissions_are_approved_for_the_version_that_was_shown(alice: User, browser: Client) -> None:
    tool = make(alice, hosts=["api.example.org"], secrets=["GREET_KEY"])
    page = text_of(browser.get("/capabilities/greeter/"))
    assert "It asks for your permission" in page
    assert "not stored yet" in page
    capability_update(user_id=alice.pk, capability_id=tool.pk, hosts=["evil.example.org"])
    said = text_of(browser.post("/capabilities/greeter/approve/", {"version": "1"}, follow=True))
    assert "was changed meanwhile" in said
    current = capability_get(alice.pk, "greeter").current
    assert current is not None
    assert not current.is_approved
    browser.post("/capabilities/greeter/approve/", {"version": "2"})
    current = capability_get(alice.pk, "greeter").current
    assert current is not None
    assert current.is_approved
    assert current.approved_by_id == alice.pk


def test_switched_off_on_and_deleted(alice: User, browser: Client) -> None:
    make(alice)
    browser.post("/capabilities/greeter/disable/")
    assert "Izzy does not use it." in text_of(browser.get("/capabilities/greeter/"))
    assert capability_get(alice.pk, "greeter").status == "disabled"
    browser.post("/capabilities/greeter/enable/")
    assert capability_get(alice.pk, "greeter").status == "active"
    assert browser.post("/capabilities/greeter/delete/")["Location"] == "/capabilities/"
    assert browser.get("/capabilities/greeter/").status_code == 404


def test_a_changed_file_is_told_and_can_be_kept_as_a_new_version(alice: User, browser: Client) -> None:
    tool = make(alice)
    path = settings.IZZY_DATA_DIR / tool.path / "main.py"
    path.write_text(GREETING.replace("Hello", "Ahoy"))
    assert "A file was changed on disk." in text_of(browser.get("/capabilities/greeter/"))
    assert "Ahoy" in text_of(browser.get("/capabilities/greeter/edit/"))
    browser.post("/capabilities/greeter/edit/", fields(main=path.read_text()))
    assert "A file was changed on disk." not in text_of(browser.get("/capabilities/greeter/"))


def test_what_came_in_an_archive_and_was_edited_is_enabled_like_any_other(
    alice: User, browser: Client
) -> None:
    capability_create(user_id=alice.pk, name="greeter", draft=draft(), untrusted=True)
    browser.post("/capabilities/greeter/edit/", fields(main=GREETING))
    edited = capability_get(alice.pk, "greeter")
    assert (edited.status, edited.status_reason) == ("disabled", "")
    browser.post("/capabilities/greeter/enable/")
    assert capability_get(alice.pk, "greeter").status == "active"


def test_download_and_install(
    alice: User, bob: User, browser: Client, sign_in: Callable[[User], Client]
) -> None:
    make(alice)
    archive = browser.get("/capabilities/greeter/download/")
    assert sorted(zipfile.ZipFile(io.BytesIO(archive.content)).namelist()) == [
        f"greeter/{name}" for name in sorted(["main.py", "requirements.txt", "manifest.json", "RUN.md"])
    ]
    other = sign_in(bob)
    upload = SimpleUploadedFile("greeter.zip", archive.content, "application/zip")
    page = text_of(other.post("/capabilities/install/", {"file": upload}, follow=True))
    assert "It came from an archive. May it run?" in page
    assert capability_get(bob.pk, "greeter").status == "disabled"
    other.post("/capabilities/greeter/approve/", {"version": "1"})
    assert capability_get(bob.pk, "greeter").status == "active"
    again = other.post("/capabilities/install/", {"file": SimpleUploadedFile("x.zip", b"nonsense")})
    assert again.status_code == 422
    assert "no zip file" in text_of(again)


def test_the_list_finds_by_words_and_by_meaning(alice: User, browser: Client) -> None:
    make(alice, "weather_lookup", description="Forecast of rain, temperature and wind for a city.")
    make(alice, "unit_converter", description="Convert between metric and imperial measures.")
    found = text_of(
        browser.get(
            "/capabilities/?q=forecast",
            headers={"HX-Request": "true", "HX-Target": "div#capability-list"},
        )
    )
    assert "weather_lookup" in found
    assert "unit_converter" not in found
    assert "<html" not in found
    by_meaning = text_of(browser.get("/capabilities/?q=will it be raining in Paris"))
    assert by_meaning.index("weather_lookup") < len(by_meaning)
    assert "Nothing found" in text_of(browser.get("/capabilities/?q=zzzzqqq&status=disabled"))


def test_secrets_are_kept_and_never_shown(
    alice: User, bob: User, browser: Client, sign_in: Callable[[User], Client]
) -> None:
    make(alice, secrets=["GREET_KEY"])
    assert "Asked for, but not stored" in text_of(browser.get("/settings/secrets/"))
    said = text_of(
        browser.post("/settings/secrets/", {"name": "GREET_KEY", "value": SECRET}, follow=True)
    )
    assert "GREET_KEY is kept." in said
    assert SECRET not in said
    assert "/capabilities/greeter/" in said
    assert secret_get("GREET_KEY", user_id=alice.pk) == SECRET
    assert SECRET not in str(list(Secret.objects.values()))
    browser.post("/settings/secrets/", {"name": "GREET_KEY", "value": SECRET + "-new"})
    assert secret_get("GREET_KEY", user_id=alice.pk) == SECRET + "-new"
    other = sign_in(bob)
    assert "GREET_KEY" not in text_of(other.get("/settings/secrets/"))
    assert other.post("/settings/secrets/GREET_KEY/delete/").status_code == 404
    assert browser.post("/settings/secrets/GREET_KEY/delete/").status_code == 302
    assert secret_get("GREET_KEY", user_id=alice.pk) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [("lower", SECRET), ("PATH", SECRET), ("OK_NAME", "qzxj"), ("OK_NAME", ""), ("", SECRET)],
)
def test_secrets_that_are_refused(alice: User, browser: Client, name: str, value: str) -> None:
    answer = browser.post("/settings/secrets/", {"name": name, "value": value})
    assert answer.status_code == 422
    assert not value or value not in text_of(answer)
    assert not Secret.objects.filter(user=alice).exists()


def test_a_form_for_every_kind_of_input() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "A <city>"},
            "days": {"type": "integer"},
            "share": {"type": "number", "default": 0.5},
            "metric": {"type": "boolean"},
            "unit": {"enum": ["km", "mi"]},
            "level": {"enum": [1, 2, 3]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"$ref": "#/$defs/place"},
        },
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
        "required": ["city"],
    }
    form = RunForm(schema)
    html = form.as_p()
    assert "A &lt;city&gt;" in html
    assert len(re.findall("<select", html)) == 3
    filled = {
        "field-0": "Oslo", "field-1": "3", "field-2": "2", "field-3": "false", "field-4": '"mi"', "field-5": "2",
        "field-6": '["a"]', "field-7": '{"lat": 59.9}',
    }  # fmt: skip
    done = RunForm(schema, filled)
    assert done.is_valid(), done.errors
    assert done.args() == {
        "city": "Oslo", "days": 3, "share": 2, "metric": False, "unit": "mi", "level": 2, "tags": ["a"], "place": {"lat": 59.9},
    }  # fmt: skip
    least = RunForm(schema, {"field-0": "Oslo"})
    assert least.is_valid()
    assert least.args() == {"city": "Oslo"}
    assert not RunForm(schema, {"field-0": "Oslo", "field-6": "[" * 5000}).is_valid()
    whole = RunForm({"type": "object"}, {"input": '{"a": 1}'})
    assert whole.is_valid()
    assert whole.args() == {"a": 1}
    for text in ("[1]", '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}'):
        assert not RunForm({"type": "object"}, {"input": text}).is_valid(), text
    assert RunForm({"type": "object", "properties": {}, "additionalProperties": False}, {}).is_valid()


def test_without_a_sandbox_the_page_says_what_to_do(
    alice: User, browser: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_SANDBOX = "none"
    make(alice, input_schema=NAME_SCHEMA)
    answer = browser.post(
        "/capabilities/greeter/run/", {"field-0": "Ada"}, headers={"HX-Request": "true"}
    )
    assert answer.status_code == 422
    assert "IZZY_SANDBOX" in text_of(answer)
    assert not Execution.everything.exists()
    monkeypatch.setattr("apps.core.health._recent", {})
    for page in ("/capabilities/", "/capabilities/greeter/"):
        assert "Nothing can be run at the moment." in text_of(browser.get(page)), page


def test_a_property_called_input_may_be_a_list() -> None:
    schema = {"type": "object", "properties": {"input": {"type": "array"}}, "required": ["input"]}
    form = RunForm(schema, {"field-0": "[1, 2]"})
    assert form.is_valid(), form.errors
    assert form.args() == {"input": [1, 2]}


def test_a_property_may_be_null_or_of_several_types(alice: User, browser: Client) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": ["string", "null"]},
            "days": {"type": ["integer", "null"]},
            "unit": {"type": ["string", "null"], "enum": ["km", "mi", None]},
            "place": {"type": ["string", "integer"]},
            "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["name", "unit", "size"],
    }
    make(alice, input_schema=schema)
    assert browser.get("/capabilities/greeter/").status_code == 200
    empty = RunForm(schema, {})
    assert empty.is_valid(), empty.errors
    assert empty.args() == {"name": None, "unit": None, "size": None}
    entered = {"field-0": "Ada", "field-1": "3", "field-2": '"mi"', "field-3": '"Oslo"', "field-4": "2"}
    filled = RunForm(schema, entered)
    assert filled.is_valid(), filled.errors
    assert filled.args() == {"name": "Ada", "days": 3, "unit": "mi", "place": "Oslo", "size": 2}


def test_a_text_of_several_lines_reaches_the_tool_as_it_was_typed() -> None:
    """A browser sends each line break as CRLF."""
    form = RunForm({"type": "object", "properties": {"text": {"type": "string"}}}, {"field-0": "a\r\nb"})
    assert form.is_valid()
    assert form.args() == {"text": "a\nb"}
