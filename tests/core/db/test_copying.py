"""Rows of two databases are compared by what they hold, whatever the engine makes of it."""

import pytest

from apps.core.db.copying import fingerprint
from apps.core.models import InstanceState


@pytest.mark.django_db
def test_an_integer_that_no_float_can_hold_is_compared_exactly() -> None:
    row = InstanceState.objects.create(key="numbers", value=[10**400])
    before = fingerprint(InstanceState, "default")
    InstanceState.objects.filter(pk=row.pk).update(value=[10**400 + 1])
    assert fingerprint(InstanceState, "default") != before
    InstanceState.objects.filter(pk=row.pk).update(value=[10**400])
    assert fingerprint(InstanceState, "default") == before
