"""A real sandbox, or the reason why there is none: in CI that is a failure."""

import os

import pytest

from apps.capabilities.sandbox.base import SandboxUnavailable
from apps.capabilities.sandbox.running import current_backend


@pytest.fixture
def real_sandbox() -> None:
    try:
        current_backend()
    except SandboxUnavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(error.message)
        pytest.skip(error.message)
