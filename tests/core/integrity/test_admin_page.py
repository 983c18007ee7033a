"""The page of the admin: a superuser has the worker look, and repair, and reads what it found."""

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.core.integrity import requests
from apps.core.models import IntegrityRun
from apps.memory.models import Memory

from .world import World

pytestmark = pytest.mark.django_db
PAGE = "/admin/core/integrityrun/"


@pytest.fixture
def page(admin: User, client: Client) -> Client:
    client.force_login(admin)
    return client


def test_it_is_asked_for_done_by_the_worker_and_read(page: Client, world: World) -> None:
    assert "Look and repair" in page.get(PAGE).content.decode()
    Memory.everything.filter(pk=world.note.pk).update(folded_content="x")
    asked = page.post(f"{PAGE}ask/", follow=True)
    assert "It is under way" in asked.content.decode()
    page.post(f"{PAGE}ask/")  # the same is not asked twice
    page.post(f"{PAGE}ask/", {"fix": "1"})
    requests.integrity_runs_work()
    looked, repaired = IntegrityRun.objects.order_by("created_at")
    assert (looked.state, looked.found, looked.left, looked.asked_by) == ("done", 1, 1, "admin")
    assert (repaired.state, repaired.found, repaired.left) == ("done", 1, 0)
    shown = page.get(f"{PAGE}{looked.pk}/change/").content.decode()
    assert "Its text for comparing is not that of the note." in shown
    assert "alice" in shown
    assert "Can be repaired: Writes it anew from the note." in shown
    shown = page.get(f"{PAGE}{repaired.pk}/change/").content.decode()
    assert "Repaired: Writes it anew from the note." in shown


def test_a_run_whose_worker_died_is_not_for_ever_under_way(page: Client) -> None:
    page.post(f"{PAGE}ask/")
    IntegrityRun.objects.update(state="running")
    requests.integrity_runs_work()
    run = IntegrityRun.objects.get()
    assert (run.state, run.error) == ("failed", requests.INTERRUPTED)


def test_nobody_but_a_superuser_asks_or_reads(alice: User, client: Client) -> None:
    client.force_login(alice)
    assert client.post(f"{PAGE}ask/", follow=True).status_code == 403
    assert client.get(PAGE, follow=True).status_code == 403
    assert not IntegrityRun.objects.exists()
