"""Dates in the admin's addresses that no calendar has."""

from collections.abc import Callable

import pytest
from django.contrib import admin as admin_site
from django.db.models import DateField
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


def dated() -> list[tuple[str, str]]:
    """(model, field) of every date by which a list of the admin can be narrowed down."""
    found = []
    for model, page in admin_site.site._registry.items():
        names = {
            page.date_hierarchy or "",
            *(name for name in page.list_filter if isinstance(name, str)),
        }
        dates = [field.name for field in model._meta.fields if isinstance(field, DateField)]
        found += [
            (model._meta.label_lower.replace(".", "_"), name) for name in sorted(names & set(dates))
        ]
    return found


def test_there_are_dates_in_the_admin_of_every_app() -> None:
    assert {"chat", "memory", "agent"} <= {model.split("_")[0] for model, _ in dated()}


@pytest.mark.parametrize(
    "query",
    [
        "{}__year=99999999",
        "{}__day=99",
        "{}__gte=x",
        "{}__gte=0001-01-01T00:00:00Z",
        "{}__lt=99999-01-01T00:00:00Z",
    ],
)
def test_no_list_of_the_admin_fails_at_a_date(
    admin: User, sign_in: Callable[[User], Client], query: str
) -> None:
    browser = sign_in(admin)
    for model, field in dated():
        address = f"{reverse(f'admin:{model}_changelist')}?{query.format(field)}"
        assert browser.get(address, follow=True).status_code in {200, 400}, address
