"""The local sandbox does what every backend does."""

import pytest

from apps.capabilities.sandbox.base import Backend
from apps.capabilities.sandbox.bubblewrap import session
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from tests.waiting import PATIENCE

from .backend_suite import BackendSuite


class TestBubblewrap(BackendSuite):
    @pytest.fixture
    def backend(self, bubblewrap: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch) -> Backend:
        """It waits longer than usual for code that was interrupted: what is nice gets little of a busy machine."""
        monkeypatch.setattr(session, "INTERRUPT_SECONDS", PATIENCE)
        return bubblewrap
