"""Without a model: what the offline model knows by heart is really built, verified and run."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.model.client import Usage
from apps.agent.models import ModelCall
from apps.agent.offline.rehearsals import PIECES, RehearsedTool
from apps.builder.builds.requesting import build_change, build_request
from apps.builder.builds.selectors import build_usage
from apps.builder.models import State
from apps.builder.runner.pool import BuildPool
from apps.capabilities.runs.execution import capability_execute
from apps.core.db.pool import in_db
from tests.agent.conftest import offline as offline
from tests.builder.test_building import built, told

pytestmark = pytest.mark.usefixtures("offline")

USES: dict[str, tuple[dict[str, Any], str]] = {
    "dice_roller": ({"dice": "2d6+1"}, "2d6+1: "),
    "unit_converter": ({"value": 10, "from": "kg", "to": "lb"}, "22.0462 lb"),
    "text_statistics": ({"text": "Rain, rain, rain. It stops."}, "5 words, 2 sentences"),
}


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.name)
async def test_what_is_known_by_heart_is_built_and_runs(
    piece: RehearsedTool, alice: User, pool: BuildPool
) -> None:
    request_build: dict[str, Any] = {
        "name": piece.name,
        "description": piece.description,
        "input_schema": piece.input_schema,
    }
    build = (await in_db(lambda: build_request(user_id=alice.pk, **request_build))).build
    assert build is not None

    await pool.idle()

    assert (await built(build)).state == State.DONE, (await built(build)).reason
    texts = [text for _, text in await told(build)]
    assert texts == [
        "Asked for", "Planning", f"Writing the {piece.title}", "Writing main.py", "Trying the code",
        "Checking it in a fresh sandbox", f"{piece.name} is ready.",
    ]  # fmt: skip
    assert await in_db(lambda: build_usage(build)) == Usage()
    calls = await in_db(
        lambda: set(ModelCall.objects.for_user(alice).values_list("model", "input_tokens"))
    )
    assert calls == {("offline", 0)}
    arguments, expected = USES[piece.name]
    execution = await capability_execute(user_id=alice.pk, name=piece.name, args=arguments)
    assert expected in execution.result


async def test_what_is_not_known_fails_with_a_plain_reason(alice: User, pool: BuildPool) -> None:
    request_build: dict[str, Any] = {
        "name": "weather",
        "description": "Tells the weather.",
        "input_schema": {"type": "object"},
    }
    build = (await in_db(lambda: build_request(user_id=alice.pk, **request_build))).build
    assert build is not None

    await pool.idle()

    failed = await built(build)
    assert (failed.state, failed.error_code) == (State.FAILED, "gave_up")
    assert "Connect a language model" in failed.reason


async def test_a_change_needs_a_model_and_the_old_version_stays(alice: User, pool: BuildPool) -> None:
    piece = PIECES[0]
    request_build: dict[str, Any] = {
        "name": piece.name,
        "description": piece.description,
        "input_schema": piece.input_schema,
    }
    await in_db(lambda: build_request(user_id=alice.pk, **request_build))
    await pool.idle()
    change = await in_db(
        lambda: build_change(user_id=alice.pk, name=piece.name, feedback="Only even numbers")
    )

    await pool.idle()

    assert (await built(change)).state == State.FAILED
    execution = await capability_execute(user_id=alice.pk, name=piece.name, args={"dice": "3d6"})
    assert execution.result.startswith("3d6: ")
