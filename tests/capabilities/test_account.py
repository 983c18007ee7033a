"""An account's deletion, export, figures, search and the admin, and capabilities."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.capabilities.catalog.lifecycle import capability_delete, capability_disable, capability_enable
from apps.capabilities.catalog.records import capability_rows
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.catalog.versions import capability_update, version_add
from apps.capabilities.models import Capability, CapabilityVersion, Execution, Origin, Trigger
from apps.core.registries import stats_providers
from apps.search.documents import Scope, Source
from apps.search.selectors import search
from tests.capabilities.making import GREETING, draft, make

pytestmark = pytest.mark.django_db(transaction=True)


def test_deleting_the_account_takes_the_files(alice: User, bob: User, admin: User) -> None:
    hers, his = make(alice), make(bob)
    user_delete(user=alice)
    root = settings.IZZY_DATA_DIR / "capabilities"
    assert not (root / str(hers.pk)).exists()
    assert (root / str(his.pk)).exists()


def test_the_export_holds_every_version_with_its_files_and_no_secret(alice: User) -> None:
    user_secret_set(user_id=alice.pk, name="GREET_KEY", value="value-of-the-key")
    made = make(alice, secrets=["GREET_KEY"])
    capability_update(user_id=alice.pk, capability_id=made.pk, description="Second.")
    rows = list(capability_rows(alice.pk))
    assert [row["type"] for row in rows] == ["capability", "capability_version", "capability_version"]
    assert [row["current"] for row in rows[1:]] == [False, True]
    assert rows[1]["files"]["main.py"] == GREETING
    assert rows[2]["description"] == "Second."
    assert "value-of-the-key" not in str(rows)


def test_the_figures(alice: User) -> None:
    make(alice, hosts=["api.example.org"])
    off = make(alice, "other")
    capability_disable(user_id=alice.pk, capability_id=off.pk)
    version_add(
        user_id=alice.pk, capability_id=make(alice, "third").pk, draft=draft(secrets=["A_KEY"]), origin=Origin.BUILDER, beside=True,
    )  # fmt: skip
    for state in (Execution.State.OK, Execution.State.FAILED, Execution.State.FAILED):
        Execution.objects.create(
            user=alice, capability=off, version=1, trigger=Trigger.CHAT, state=state
        )
    figures = stats_providers["capabilities"](alice.pk)
    assert (figures["total"], figures["by_status"]["active"], figures["by_status"]["disabled"]) == (
        3,
        2,
        1,
    )
    assert figures["waiting_for_approval"] == 2
    assert (figures["runs"], figures["failed_runs"]) == (3, 2)


def test_only_active_ones_are_found_by_search(alice: User, bob: User) -> None:
    capabilities = Scope(sources=frozenset({Source.CAPABILITY}))

    def found(user: User) -> list[str]:
        return [hit.text.split("\n")[0] for hit in search(user.pk, "greet somebody", scope=capabilities)]

    made = make(alice)
    assert found(alice) == ["greeter"]
    assert found(bob) == []
    capability_disable(user_id=alice.pk, capability_id=made.pk)
    assert found(alice) == []
    capability_enable(user_id=alice.pk, capability_id=made.pk)
    capability_update(user_id=alice.pk, capability_id=made.pk, description="Salute a person.")
    assert "Salute a person." in search(alice.pk, "salute", scope=capabilities)[0].text
    capability_delete(user_id=alice.pk, capability_id=made.pk)
    assert found(alice) == []


def test_the_admin_shows_disables_and_deletes(
    alice: User, admin: User, sign_in: Callable[[User], Client]
) -> None:
    made = make(alice)
    browser = sign_in(admin)
    for model in ("capability", "capabilityversion", "execution"):
        assert browser.get(f"/admin/capabilities/{model}/").status_code == 200
    assert "greeter" in browser.get("/admin/capabilities/capability/?q=greet").content.decode()
    assert browser.get(f"/admin/capabilities/capability/{made.pk}/change/").status_code == 200
    first = made.current
    second = capability_update(user_id=alice.pk, capability_id=made.pk, description="Second.")
    for version in filter(None, (first, second)):
        browser.post(f"/admin/capabilities/capabilityversion/{version.pk}/delete/", {"post": "yes"})
        assert not (settings.IZZY_DATA_DIR / version.path).exists()
    left = Capability.objects.for_user(alice).get()
    assert (left.current, left.status, left.path) == (None, "disabled", "")
    version_add(user_id=alice.pk, capability_id=made.pk, draft=draft())
    capability_enable(user_id=alice.pk, capability_id=made.pk)
    chosen = {"action": "disable", "_selected_action": [str(made.pk)]}
    browser.post("/admin/capabilities/capability/", chosen)
    assert Capability.objects.for_user(alice).get().status == "disabled"
    browser.post(f"/admin/capabilities/capability/{made.pk}/delete/", {"post": "yes"})
    assert not Capability.objects.for_user(alice).exists()
    assert not CapabilityVersion.objects.for_user(alice).exists()
    assert not (settings.IZZY_DATA_DIR / "capabilities" / str(made.pk)).exists()
