"""A tool that the assistant built is tested once, whichever worker comes first."""

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.selectors import versions_unproven
from apps.capabilities.catalog.versions import capability_create
from apps.capabilities.models import CapabilityVersion
from apps.capabilities.runs import examples
from apps.core.db.pool import in_db
from apps.core.errors import Unavailable

pytestmark = pytest.mark.django_db(transaction=True)


def approved_but_untested(user: User) -> CapabilityVersion:
    draft = Draft(
        description="Greets.",
        input_schema={"type": "object"},
        main='def run(args: dict) -> str:\n    return "hi"\n',
        examples=[{"input": {}, "expect": "hi"}],
    )
    made = capability_create(user_id=user.pk, name="greet", draft=draft)
    versions = CapabilityVersion.objects.for_user(user).filter(capability=made)
    versions.update(origin="assistant", approved_at=timezone.now(), tested_at=None)
    return versions.select_related("capability").get()


async def test_two_workers_test_a_version_once(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    version = await in_db(approved_but_untested, alice)
    assert await in_db(versions_unproven) == [version]
    tested: list[str] = []

    async def test(name: str, _: CapabilityVersion) -> list[str]:
        tested.append(name)
        assert await in_db(versions_unproven) == [], "nobody else takes it up meanwhile"
        return []

    monkeypatch.setattr(examples, "failures_of", test)
    await in_db(CapabilityVersion.lease_take, version.pk, "another")
    await examples.version_test(version)
    assert tested == []
    await in_db(CapabilityVersion.lease_release, version.pk, "another")
    await examples.version_test(version)
    await examples.version_test(version)
    assert tested == ["greet"]


async def test_without_a_sandbox_it_is_given_back(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    version = await in_db(approved_but_untested, alice)

    async def test(*_: object) -> list[str]:
        raise Unavailable

    monkeypatch.setattr(examples, "failures_of", test)
    with pytest.raises(Unavailable):
        await examples.versions_test()
    assert await in_db(versions_unproven) == [version]
