"""The builds pages: the list, a build with its transcript, asking for a new tool, a change, a repair."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.builder.builds.ending import build_end, build_succeed
from apps.builder.builds.messages import message_add
from apps.builder.builds.requesting import build_change, build_retry
from apps.builder.builds.selectors import messages_after
from apps.builder.models import Build, Follower, Kind, MessageType, State
from apps.builder.runner.pool import BuildPool
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.lifecycle import capability_rollback, version_tested
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.catalog.versions import capability_begin, capability_create, version_add
from apps.capabilities.models import Capability, CapabilityVersion, Execution, Origin
from apps.core.db.pool import in_db
from apps.core.errors import Conflict
from tests.builder.scripts import DICE, EXAMPLES, SCHEMA, register, write
from tests.builder.test_building import request_build
from tests.peers.anthropic_server import AnthropicServer

SignIn = Callable[[User], Client]


@pytest.fixture
def dice(alice: User) -> Capability:
    draft = Draft(description="Rolls dice.", input_schema=SCHEMA, main=DICE)
    return capability_create(user_id=alice.pk, name="dice_roller", draft=draft)


def failed_run(capability: Capability) -> Execution:
    return Execution.objects.create(
        user_id=capability.user_id, capability=capability, version=1, state="failed", error_code="raised",
        error_message="Traceback: ZeroDivisionError", input={"count": 3, "sides": 0},
        conversation_id=uuid4(), turn_id=uuid4(), tool_call_id=uuid4(),
    )  # fmt: skip


async def test_a_build_shows_every_round_with_code_and_output(
    alice: User, model: AnthropicServer, pool: BuildPool, sign_in: SignIn
) -> None:
    build = await in_db(request_build, alice)
    model.add(write(DICE.replace("sum(rolls)", "total")), register(), write(), register())
    await pool.idle()
    client = await in_db(sign_in, alice)

    page = (await in_db(lambda: client.get(f"/builds/{build.pk}/"))).content.decode()
    part = f"/builds/{build.pk}/transcript/"
    opened = await in_db(lambda: client.get(part, headers={"Sec-Fetch-Dest": "document"}))

    assert opened["Location"] == f"/builds/{build.pk}/"
    assert "Round 4" in page
    assert "random.randint" in page
    assert "NameError" in page
    assert "Handed it in" in page
    assert "4 rounds" in page
    listed = (await in_db(lambda: client.get("/builds/"))).content.decode()
    assert f"/builds/{build.pk}/" in listed
    only = (await in_db(lambda: client.get("/builds/?state=failed"))).content.decode()
    assert f"/builds/{build.pk}/" not in only


def test_a_new_tool_is_asked_for_in_words(alice: User, sign_in: SignIn) -> None:
    client = sign_in(alice)
    answer = client.post(
        "/builds/new/", {"name": "Tip calculator", "description": "Adds a tip to a bill."}
    )
    build = Build.objects.for_user(alice).get()
    assert answer.headers["Location"] == f"/builds/{build.pk}/"
    assert (build.kind, build.name, build.description) == (
        Kind.NEW,
        "tip_calculator",
        "Adds a tip to a bill.",
    )
    refused = client.post("/builds/new/", {"name": "Tip!", "description": "x"})
    assert refused.status_code == 422
    assert "lower-case letter" in refused.content.decode()


def test_a_change_and_a_repair_start_from_the_tools_page(
    alice: User, dice: Capability, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    form = client.get("/builds/new/?capability=dice_roller").content.decode()
    assert "Change dice_roller" in form
    client.post("/builds/new/", {"capability": "dice_roller", "feedback": "Sort the dice."})
    change = Build.objects.for_user(alice).get()
    assert (change.kind, change.feedback) == (Kind.CHANGE, "Sort the dice.")
    again = client.post("/builds/new/", {"capability": "dice_roller", "feedback": "More."})
    assert again.status_code == 422
    assert "is being built right now" in again.content.decode()
    Build.objects.for_user(alice).update(state=State.FAILED)

    run = failed_run(dice)
    form = client.get("/builds/new/?capability=dice_roller&execution=last").content.decode()
    assert "ZeroDivisionError" in form
    of_call = client.get(f"/builds/new/?capability=dice_roller&call={run.tool_call_id}").content.decode()
    assert f'name="execution" value="{run.pk}"' in of_call
    client.post("/builds/new/", {"capability": "dice_roller", "execution": str(run.pk)})
    repair = Build.objects.for_user(alice).exclude(pk=change.pk).get()
    assert (repair.kind, repair.execution_id) == (Kind.REPAIR, run.pk)
    told = Follower.objects.for_user(alice).get(build=repair)
    assert (told.conversation_id, told.turn_id) == (run.conversation_id, run.turn_id)


def test_a_repair_whose_run_is_no_longer_kept_is_tried_again_as_a_change(
    alice: User, dice: Capability
) -> None:
    for feedback, outcome in (("It fails for ten dice.", Kind.CHANGE), ("", "run_gone")):
        run = failed_run(dice)
        repair = build_change(
            user_id=alice.pk, name=dice.name, feedback=feedback, execution_id=str(run.pk)
        )
        Build.objects.for_user(alice).update(state=State.FAILED)
        Execution.objects.for_user(alice).filter(pk=run.pk).delete()
        if outcome == "run_gone":
            with pytest.raises(Conflict, match="no longer kept") as refused:
                build_retry(user_id=alice.pk, build_id=repair.pk)
            assert refused.value.code == outcome
        else:
            again = build_retry(user_id=alice.pk, build_id=repair.pk).build
            assert again is not None
            assert (again.kind, again.feedback) == (outcome, feedback)
            Build.objects.for_user(alice).update(state=State.FAILED)


def test_where_nothing_can_be_built_the_page_says_what_to_do(
    alice: User, sign_in: SignIn, settings: object
) -> None:
    settings.IZZY_SANDBOX = "none"  # type: ignore[attr-defined]
    client = sign_in(alice)
    assert "IZZY_SANDBOX" in client.get("/builds/new/").content.decode()
    refused = client.post("/builds/new/", {"name": "tip_calculator", "description": "Adds a tip."})
    assert refused.status_code == 422
    assert not Capability.objects.for_user(alice).exists()
    listed = client.get("/builds/").content.decode()
    assert "Nothing built yet" in listed


@pytest.mark.django_db(transaction=True)
def test_the_list_says_which_builds_wait_for_their_user(
    alice: User, sign_in: Callable[[User], Client]
) -> None:
    asking = a_build(alice, "asks_something", state=State.RUNNING)
    with transaction.atomic():
        message_add(
            build=asking, type=MessageType.QUESTION, payload={"kind": "question", "text": "Which?"}
        )
    a_build(alice, "goes_on", state=State.RUNNING)
    draft = Draft(description="d", input_schema=SCHEMA, main=DICE, hosts=["dice.example.org"])
    made = capability_create(user_id=alice.pk, name="wants_network", draft=draft, origin=Origin.BUILDER)
    Build.objects.create(
        user=alice, capability=made, name=made.name, description="d", state=State.DONE, version=1
    )
    page = sign_in(alice).get("/builds/").content.decode()
    rows = dict(re.findall(r"<strong>(\w+)</strong>(.*?)</a>", page, flags=re.DOTALL))
    assert {name for name, text in rows.items() if "waits for you" in text} == {
        "asks_something",
        "wants_network",
    }
    assert "being built" in rows["goes_on"]


def a_build(user: User, name: str, *, state: State) -> Build:
    begun = capability_begin(user_id=user.pk, name=name, description="d", input_schema=SCHEMA)
    later = timezone.now() + timedelta(hours=1)
    return Build.objects.create(
        user=user,
        capability=begun,
        name=name,
        description="d",
        state=state,
        runner="x",
        lease_until=later,
    )


def test_of_two_versions_that_ask_the_newer_one_waits(
    alice: User, dice: Capability, sign_in: SignIn
) -> None:
    """The one before it cannot be approved any more."""
    builds = []
    for host in ("a.example.org", "b.example.org"):
        builds.append(build_change(user_id=alice.pk, name=dice.name, feedback=host))
        asking = Draft(
            description="Rolls dice.",
            input_schema=SCHEMA,
            main=DICE,
            hosts=[host],
            examples=[{"input": {"count": 1, "sides": 6}}],
        )
        build_succeed(build=builds[-1], draft=asking)
    page = sign_in(alice).get("/builds/").content.decode()
    newer, older = page.split('<li class="build-row card">')[1:]
    assert (str(builds[1].pk) in newer, "waits for you" in newer) == (True, True)
    assert (str(builds[0].pk) in older, "waits for you" in older) == (True, False)
    stages = [messages_after(build)[-1].payload["stage"] for build in builds]
    assert stages == ["replaced", "approval"]  # as their cards say
    version_add(user_id=alice.pk, capability_id=dice.pk, draft=replace(asking, hosts=()))
    assert messages_after(builds[1])[-1].payload["stage"] == "replaced"
    overtaken = CapabilityVersion.objects.for_user(alice).get(capability=dice, number=3)
    told = len(messages_after(builds[1]))
    version_tested(user_id=alice.pk, version_id=overtaken.pk, failures=[])
    assert len(messages_after(builds[1])) == told
    CapabilityVersion.objects.for_user(alice).filter(pk=overtaken.pk).update(tested_at=None)
    capability_rollback(user_id=alice.pk, capability_id=dice.pk, number=3)
    assert messages_after(builds[1])[-1].payload["stage"] == "approval"


def test_the_reason_of_a_failure_stands_on_the_card_alone(alice: User, sign_in: SignIn) -> None:
    """The card reads it from the build's messages; without scripts the page says it instead."""
    build = request_build(alice)
    build_end(build=build, code="gave_up", reason="It needs a paid service.\nMore.")
    page = sign_in(alice).get(f"/builds/{build.pk}/").content.decode()
    assert page.count("It needs a paid service.") == 1
    assert page.index("<noscript>") < page.index("It needs a paid service.") < page.index("</noscript>")
    assert "It ended before anything was written." in page


def test_the_builds_of_one_capability_are_called_so(alice: User, sign_in: SignIn) -> None:
    mine, other = request_build(alice), request_build(alice, name="other_dice")
    client = sign_in(alice)
    page = client.get("/builds/?name=dice_roller").content.decode()
    assert "Builds of" in page
    assert f"/builds/{mine.pk}/" in page
    assert f"/builds/{other.pk}/" not in page
    assert "?state=failed&amp;name=dice_roller" in page
    for odd in ("<script>", "a" * 5000, "\x00", "No such"):
        answer = client.get("/builds/", {"name": odd})
        assert answer.status_code == 200
        assert "Builds of" not in answer.content.decode()


def built_version(tool: Capability, **fields: Any) -> CapabilityVersion:
    """A draft that a build has handed in and that asks for a host and a secret."""
    draft = Draft(
        description="Rolls dice.", input_schema=SCHEMA, main=DICE, examples=EXAMPLES, hosts=["a.example.org"], secrets=["DICE_KEY"]
    )  # fmt: skip
    return version_add(
        user_id=tool.user_id,
        capability_id=tool.pk,
        draft=draft,
        origin=Origin.BUILDER,
        beside=True,
        **fields,
    )


def test_a_new_version_that_asks_for_more_waits_beside_the_one_in_use(
    alice: User, bob: User, dice: Capability, sign_in: SignIn
) -> None:
    waiting = built_version(dice)
    client = sign_in(alice)
    page = client.get("/capabilities/dice_roller/").content.decode()
    assert "Version 2 asks for your permission" in page
    assert "Version 1 stays in use until" in page
    assert "Version 2 waits for your approval" in client.get("/capabilities/").content.decode()
    assert "not stored yet: add it" in page
    assert "Make current" not in client.get("/capabilities/dice_roller/versions/").content.decode()
    assert sign_in(bob).post("/capabilities/dice_roller/approve/", {"version": 2}).status_code == 404
    for number in ("", "x", "-1", "3", "9" * 20):
        client.post("/capabilities/dice_roller/approve/", {"version": number})
        waiting.refresh_from_db(from_queryset=CapabilityVersion.objects.for_user(alice))
        assert not waiting.is_approved

    said = client.post(
        "/capabilities/dice_roller/approve/", {"version": "2"}, follow=True
    ).content.decode()
    assert "Izzy runs its examples now" in said
    assert "It needs a secret that is not stored" in said
    user_secret_set(user_id=alice.pk, name="DICE_KEY", value="a-key-of-dice")
    assert "Version 2 is being tested" in client.get("/capabilities/dice_roller/").content.decode()

    version_tested(user_id=alice.pk, version_id=waiting.pk, failures=["Example 1: raised: no luck"])
    page = client.get("/capabilities/dice_roller/").content.decode()
    assert "Version 2 failed its test." in page
    assert "Version 2 failed its test" in client.get("/capabilities/").content.decode()
    assert "Example 1: raised: no luck" in page
    current = Capability.objects.for_user(alice).select_related("current").get().current
    assert current is not None
    assert current.number == 1


def test_a_first_version_says_that_it_was_not_tested_yet(alice: User, sign_in: SignIn) -> None:
    tool = capability_begin(
        user_id=alice.pk, name="dice_roller", description="Rolls.", input_schema=SCHEMA
    )
    built_version(tool)
    client = sign_in(alice)
    assert "It was not tested with this yet" in client.get("/capabilities/dice_roller/").content.decode()
    client.post("/capabilities/dice_roller/approve/", {"version": "1"})
    page = client.get("/capabilities/dice_roller/").content.decode()
    assert "Its examples are run as soon as it is there." in page
