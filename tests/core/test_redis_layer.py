"""REDIS_URL: tabs of different processes reach each other through a real Redis."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from django.conf import settings
from pytest_django import Settings

from apps.core.checks import check_redis

SEND = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "izzysite.settings"
import django
django.setup()
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
async_to_sync(get_channel_layer().group_send)("conversation", {"type": "nudge", "seq": 7})
"""


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing")
        pytest.skip("redis-server is not installed")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"redis://127.0.0.1:{port}/0"
    server.terminate()
    server.wait(10)


async def test_a_message_sent_by_another_process_arrives(redis_url: str) -> None:
    from channels_redis.pubsub import RedisPubSubChannelLayer

    layer = RedisPubSubChannelLayer(hosts=[redis_url], prefix="izzy")
    channel = await layer.new_channel()
    await layer.group_add("conversation", channel)
    environment = os.environ | {"REDIS_URL": redis_url}
    sender = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SEND, env=environment, cwd=settings.BASE_DIR
    )
    assert await sender.wait() == 0
    assert await layer.receive(channel) == {"type": "nudge", "seq": 7}
    await layer.flush()


def test_the_doctor_sees_a_redis_that_answers_and_one_that_does_not(
    redis_url: str, settings: Settings
) -> None:
    settings.REDIS_URL = redis_url
    assert check_redis().ok
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    result = check_redis()
    assert not result.ok
    assert "REDIS_URL" in result.hint
    settings.REDIS_URL = "nonsense"
    assert not check_redis().ok
