from collections.abc import AsyncIterator

import pytest

from apps.accounts.models import User
from tests.gateway.proxy.driving import Proxy, proxied


@pytest.fixture
async def proxy(transactional_db: None, alice: User) -> AsyncIterator[Proxy]:
    """The proxy with a token of alice's."""
    async with proxied() as proxy:
        await proxy.token(alice)
        yield proxy
