"""The database itself holds columns of few values (tiers, kinds, states, directions, types) to those values."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction

from apps.core.ids import uuid7
from apps.core.models import IntegrityRun
from apps.memory.models import CaptureWindow
from apps.search.models import EmbeddingSpace
from tests.conftest import make_user
from tests.site.belongings import make_belongings
from tests.site.conftest import Standing

pytestmark = pytest.mark.django_db

OURS = [model for model in apps.get_models() if model.__module__.startswith("apps.")]
CHOSEN = [(model, field) for model in OURS for field in model._meta.concrete_fields if field.choices]
CLOSED = {
    "tier",
    "kind",
    "status",
    "state",
    "direction",
    "type",
    "role",
    "origin",
    "trust",
    "action",
    "trigger",
}
OPEN = {"chat.TurnEvent.type"}
"""The log takes whatever events there are."""


@pytest.fixture(scope="module", autouse=True)
def rows(standing: Standing) -> Iterator[None]:
    with standing():
        alice = make_user("alice")
        make_belongings(alice)
        CaptureWindow.objects.create(user=alice, conversation_id=uuid7())
        IntegrityRun.objects.create()
        EmbeddingSpace.objects.create(name="another", dimension=2, noise=0, match=1, role="side")
        yield


@pytest.mark.parametrize(("model", "field"), CHOSEN, ids=lambda part: getattr(part, "name", None))
def test_the_database_takes_no_value_that_is_no_choice(
    model: type[models.Model], field: "models.Field[str, str]"
) -> None:
    rows = model._base_manager.all()
    assert rows.exists(), "an update of no row proves nothing"
    with (
        pytest.raises(IntegrityError, match=f"{model._meta.db_table}_{field.column}_known"),
        transaction.atomic(),
    ):
        rows.update(**{field.name: "nonsense"[: field.max_length]})
    if not field.blank:
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.update(**{field.name: ""})


@pytest.mark.parametrize(("model", "field"), CHOSEN, ids=lambda part: getattr(part, "name", None))
def test_the_database_takes_every_choice(
    model: type[models.Model], field: "models.Field[str, str]"
) -> None:
    (check,) = [
        c for c in model._meta.constraints if c.name == f"{model._meta.db_table}_{field.column}_known"
    ]
    for value, _ in field.flatchoices:
        check.validate(model, model(**{field.name: value}))


def test_columns_of_few_values_name_them() -> None:
    free = {
        f"{model._meta.label}.{field.name}"
        for model in OURS
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField) and field.name in CLOSED and not field.choices
    }
    assert free == OPEN
