"""The local sandbox does what every backend does."""

import pytest

from apps.capabilities.sandbox.base import Backend
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend

from .backend_suite import BackendSuite


class TestBubblewrap(BackendSuite):
    @pytest.fixture
    def backend(self, bubblewrap: BubblewrapBackend) -> Backend:
        return bubblewrap
