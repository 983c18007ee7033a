"""Dates in the admin's addresses that no calendar has."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", ["memory_memory", "agent_modelcall", "agent_toolcall"])
@pytest.mark.parametrize(
    "query",
    [
        "created_at__year=99999999",
        "created_at__year=-1",
        "created_at__year=0",
        "created_at__year=x",
        "created_at__year=9999&created_at__month=12&created_at__day=31",
        "created_at__year=2026&created_at__month=99",
        "created_at__year=2026&created_at__month=2&created_at__day=31",
        "created_at__year=" + "9" * 500,
    ],
)
def test_an_impossible_date_is_no_server_error(
    admin: User, sign_in: Callable[[User], Client], model: str, query: str
) -> None:
    answer = sign_in(admin).get(f"{reverse(f'admin:{model}_changelist')}?{query}", follow=True)
    assert answer.status_code in {200, 400}
