"""`manage.py retest`, and what is suggested for retirement."""

import asyncio
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.capabilities.catalog.lifecycle import capability_disable
from apps.capabilities.catalog.selectors import capability_get, retire_reason
from apps.capabilities.catalog.versions import capability_update
from apps.capabilities.models import Capability, CapabilityVersion
from apps.capabilities.runs import examples
from apps.core.db.pool import in_db
from tests.capabilities.making import make

pytestmark = pytest.mark.django_db(transaction=True)
needs_sandbox = pytest.mark.usefixtures("real_sandbox")

EXAMPLES = [{"input": {"name": "Ada"}, "expect": "Hello, Ada"}, {"input": {"name": "Bo"}}]


def retest(*args: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("retest", *args, stdout=out, no_color=True)
    except SystemExit as end:
        return out.getvalue(), int(str(end.code))
    return out.getvalue(), 0


@needs_sandbox
def test_examples_that_pass_and_fail(alice: User, bob: User) -> None:
    make(alice, "good", examples=EXAMPLES)
    make(alice, "bad", examples=[*EXAMPLES, {"input": {"name": "Cy"}, "expect": "Goodbye"}])
    make(
        bob,
        "broken",
        main="def run(args):\n    raise KeyError('x')\n",
        examples=[{"input": {"name": "Di"}}],
    )
    make(bob, "untested")
    off = make(bob, "off", examples=EXAMPLES)
    capability_disable(user_id=bob.pk, capability_id=off.pk)
    said, code = retest()
    assert code == 1
    assert "alice/good v1: ok (2 examples)" in said
    assert "alice/bad v1: FAILED (3 examples)" in said
    assert "Example 3: expected 'Goodbye', got 'Hello, Cy!'" in said
    assert "bob/broken v1: FAILED" in said
    assert "KeyError: 'x'" in said
    assert "bob/untested v1: no examples" in said
    assert "off" not in said
    assert "1 pass, 2 fail, 1 have no examples." in said
    assert retire_reason(capability_get(alice.pk, "bad")) == "Its examples fail."
    assert retire_reason(capability_get(alice.pk, "good")) == ""
    tested = CapabilityVersion.objects.for_user(alice).get(capability__name="good")
    assert tested.tested_at is not None
    assert capability_get(alice.pk, "good").runs == 0


SILENT = "def run(args):\n    return ''\n"


@needs_sandbox
def test_what_passes_again_is_not_said_to_fail(alice: User) -> None:
    made = make(alice, examples=EXAMPLES)
    CapabilityVersion.objects.for_user(alice).update(test_failures=["Example 1: timed_out: late"])
    said, code = retest()
    assert (code, "retire" in said) == (0, False)
    mine = CapabilityVersion.objects.for_user(alice).filter(capability=made)
    mine.update(examples=[{"input": {"name": "Cy"}, "expect": "Goodbye"}])
    said, code = retest()
    assert (code, "Its examples fail. It may be time to retire it." in said) == (1, True)


@needs_sandbox
def test_an_empty_result_passes_where_the_example_says_so(alice: User) -> None:
    make(alice, "silent", main=SILENT, examples=[{"input": {"name": "Ada"}}])
    make(alice, "told", main=SILENT, examples=[{"input": {"name": "Ada"}, "expect": ""}])
    make(alice, "loud", examples=[{"input": {"name": "Ada"}, "expect": ""}])
    said, _ = retest()
    assert "silent v1: FAILED" in said
    assert "its result is empty" in said
    assert "told v1: ok" in said
    assert "loud v1: FAILED" in said
    assert "Example 1: expected '', got 'Hello, Ada!'" in said


@needs_sandbox
def test_what_has_passed_before_may_still_give_an_empty_result(alice: User) -> None:
    made = make(alice, "silent", main=SILENT, examples=[{"input": {"name": "Ada"}}])
    CapabilityVersion.objects.for_user(alice).filter(capability=made).update(tested_at=timezone.now())
    for _ in range(2):
        assert "silent v1: ok" in retest()[0]


@needs_sandbox
def test_only_one_or_only_a_users(alice: User, bob: User) -> None:
    make(alice, "good", examples=EXAMPLES)
    make(bob, "other", examples=EXAMPLES)
    said, code = retest("--user", "alice")
    assert (code, "other" in said) == (0, False)
    said, code = retest("other")
    assert (code, "good" in said) == (0, False)
    for args in (["nonsense"], ["--user", "nobody"]):
        with pytest.raises(CommandError):
            call_command("retest", *args)


def test_without_a_sandbox_nothing_is_marked(alice: User, settings: Any) -> None:
    settings.IZZY_SANDBOX = "none"
    make(alice, examples=EXAMPLES)
    with pytest.raises(CommandError, match="IZZY_SANDBOX"):
        call_command("retest")
    assert CapabilityVersion.objects.for_user(alice).get().tested_at is None


@needs_sandbox
def test_from_its_page(alice: User, sign_in: Any) -> None:
    made = make(alice, examples=EXAMPLES)
    make(alice, "bare")
    browser: Client = sign_in(alice)

    def told(name: str) -> str:
        return browser.post(f"/capabilities/{name}/retest/", follow=True).content.decode()

    assert "All 2 examples pass." in told("greeter")
    assert "It has no examples" in told("bare")
    capability_disable(user_id=alice.pk, capability_id=made.pk)
    assert "greeter is disabled." in told("greeter")
    assert CapabilityVersion.objects.for_user(alice).get(capability=made).test_failures == []


def test_a_second_test_of_a_version_says_that_one_is_under_way(
    alice: User, sign_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(alice, examples=EXAMPLES)
    browser: Client = sign_in(alice)
    said: list[object] = []

    async def meanwhile(name: str, version: CapabilityVersion) -> list[str]:
        monkeypatch.setattr(examples, "failures_of", None)
        said.append(await in_db(lambda: retest("greeter")))
        page = await in_db(lambda: browser.post("/capabilities/greeter/retest/", follow=True))
        said.append("being tested right now" in page.content.decode())
        await examples.version_test(version)
        return []

    monkeypatch.setattr(examples, "failures_of", meanwhile)
    tested = asyncio.run(examples.capability_retest(user_id=alice.pk, name="greeter"))
    busy = "The examples of greeter are being tested right now. Look again in a moment."
    line = f"alice/greeter: {busy}\n0 pass, 0 fail, 0 have no examples.\n"
    assert (tested.ok, said) == (True, [(line, 0), True])
    monkeypatch.setattr(examples, "failures_of", meanwhile)
    assert asyncio.run(examples.capability_retest(user_id=alice.pk, name="greeter")).tried == 2


@needs_sandbox
def test_what_becomes_current_meanwhile_is_not_what_was_tested(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(alice, examples=EXAMPLES[:1])
    first, run_examples = made.current, examples.failures_of
    change: dict[str, Any] = {
        "user_id": alice.pk,
        "capability_id": made.pk,
        "main": "def run(args):\n    return 'Nothing.'\n",
    }

    async def after_a_change(name: str, version: CapabilityVersion) -> list[str]:
        await in_db(lambda: capability_update(**change))
        return await run_examples(name, version)

    monkeypatch.setattr(examples, "failures_of", after_a_change)
    tested = asyncio.run(examples.capability_retest(user_id=alice.pk, name="greeter"))

    assert (tested.version, tested.failures) == (1, ())
    assert first is not None
    first.refresh_from_db(from_queryset=CapabilityVersion.objects.for_user(alice))
    assert (first.test_failures, first.tested_at is not None) == ([], True)


def test_what_was_not_used_for_long_is_suggested_for_retirement(alice: User, sign_in: Any) -> None:
    capability = make(alice)
    assert retire_reason(capability) == ""
    long_ago = timezone.now() - timedelta(days=100)
    Capability.objects.for_user(alice).update(
        created_at=long_ago, updated_at=long_ago, last_run_at=long_ago
    )
    assert retire_reason(capability_get(alice.pk, "greeter")) == "Not used for 100 days."
    page = sign_in(alice).get("/capabilities/").content.decode()
    assert "Not used for 100 days." in page
