"""A real sandbox, or the reason why there is none: in CI that is a failure."""

import os

import pytest

from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend


@pytest.fixture
def bubblewrap() -> BubblewrapBackend:
    backend = BubblewrapBackend()
    found = backend.probe()
    if not found.ok:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{found.message} {found.hint}")
        pytest.skip(f"{found.message} {found.hint}")
    return backend
