"""Each table says whose rows it holds: on PostgreSQL a write to users' rows needs the lock of their user."""

import pytest
from django.apps import apps
from django.db import models

OURS = [model for model in apps.get_models() if model.__module__.startswith("apps.")]
BY_CONVERSATION = {"chat.TurnEvent"}
"""Tables of users' rows that name another row of theirs instead of the user."""


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_a_table_has_an_owners_column_or_is_the_instances(model: type[models.Model]) -> None:
    owned = any(field.attname == "user_id" for field in model._meta.concrete_fields)
    if model._meta.label in BY_CONVERSATION:
        assert not owned
    elif not owned:
        assert getattr(model, "instance_wide", False), "say instance_wide = True, or give it an owner"
