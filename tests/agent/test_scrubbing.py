"""Secrets do not survive in anything that is stored, shown or sent."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agent.tools.results import REMOVED, Scrubber

SECRET = "p/a+s s?w&örd=1"


@pytest.mark.parametrize(
    "key",
    [
        "sk-ant-api03-" + "aB3_-" * 10,
        "sk-proj-" + "a1B2" * 12,
        "izzy_" + "a1B2" * 8,
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2" * 9,
        "glpat-" + "a1B2" * 5,
        "AKIA" + "ABCD1234EFGH5678",
        "AIza" + "a1B2c" * 7,
        "xoxb-" + "1234567890-abc",
        "hf_" + "a1B2" * 8,
        "e2b_" + "a1b2" * 10,
        "sk_live_" + "a1B2" * 6,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nline\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA",
    ],
)
def test_known_key_shapes_are_removed(key: str) -> None:
    assert Scrubber().text(f"before {key} after").startswith(f"before {REMOVED}")
    assert key[-8:] not in Scrubber().text(f"before {key} after")


def test_the_password_in_a_url_is_removed_and_the_rest_stays() -> None:
    scrubbed = Scrubber().text("postgres://izzy:hunter2@db.example.org/izzy")
    assert scrubbed == f"postgres://{REMOVED}@db.example.org/izzy"


@pytest.mark.parametrize(
    "text",
    [
        "sk-short",
        "My task-list is long",
        "an eyJ sandwich",
        "http://example.org:8000/a@b",
        "desk-lamp-in-the-hallway",
        "a risk-free-investment-strategy-for-everybody",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Scrubber().text(text) == text


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote(SECRET),
        quote_plus(SECRET),
        quote(SECRET, safe="").lower(),
        json.dumps(SECRET)[1:-1],
        json.dumps(json.dumps(SECRET)),
        repr(SECRET)[1:-1],
        repr(SECRET.encode())[2:-1],
        html.escape(SECRET),
        html.escape(SECRET, quote=False),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_stored_value_is_found_in_every_form(form: str) -> None:
    scrubbed = Scrubber([SECRET]).text(f"x={form};")
    assert REMOVED in scrubbed
    assert form not in scrubbed


@given(
    before=st.binary(max_size=9), after=st.binary(max_size=9), secret=st.text(min_size=8, max_size=40)
)
def test_a_value_inside_longer_base64_cannot_be_read_back(
    before: bytes, after: bytes, secret: str
) -> None:
    raw = secret.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(before + raw + after).decode()
    assert REMOVED in Scrubber([secret]).text(encoded)


def test_short_values_are_left_alone() -> None:
    assert Scrubber(["1234567"]).text("call 1234567") == "call 1234567"


def test_the_longer_of_two_values_goes_first() -> None:
    assert Scrubber(["password1", "password1-long"]).text("password1-long") == REMOVED


def test_json_keeps_its_shape() -> None:
    value = {"a": ["hunter22hunter", 1, None, True], "hunter22hunter": {"b": 2.5}}
    assert Scrubber(["hunter22hunter"]).json(value) == {
        "a": [REMOVED, 1, None, True],
        REMOVED: {"b": 2.5},
    }


@pytest.mark.parametrize(
    "text",
    ["eyJ", "eyJaaaaaaaa.", "sk-", "://a:bbb", "-----BEGIN PRIVATE KEY-----", "SG.", "%2F", "AIza"],
)
def test_no_text_takes_long_to_scrub(text: str) -> None:
    """Patterns that backtrack would run into the test's time limit."""
    assert Scrubber([SECRET]).text((text * 1_000_000)[:1_000_000])
