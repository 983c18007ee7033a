"""Taken out, brought into another account and taken out again: the same file."""

import pytest

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.chat.models import Conversation, Folder
from tests.conftest import make_user

from .conftest import TakeIn, counts, exported

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_export_that_goes_into_an_empty_instance_comes_out_the_same(
    full: User, admin: User, take_in: TakeIn
) -> None:
    kept = Folder.objects.create(user=full, name="Kept", opened=False)
    Conversation.objects.for_user(full).update(archived=True, folder=kept)
    data = exported(full)
    assert b'"pinned":true,"archived":true' in data
    user_delete(user=full)
    other = make_user("other")
    job = take_in(other, data, own=True)
    assert (job.state, job.error) == ("done", "")
    assert (counts(job, "wrong"), counts(job, "skipped")) == ({}, {}), job.report
    assert exported(other).decode().splitlines() == data.decode().splitlines()
