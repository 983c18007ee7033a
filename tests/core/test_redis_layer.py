"""REDIS_URL: tabs of different processes reach each other through a real Redis."""

import asyncio
import os
import sys
from collections.abc import Callable

from django.conf import settings
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from apps.core.health import check_redis

SEND = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "izzysite.settings"
import django
django.setup()
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
async_to_sync(get_channel_layer().group_send)("conversation", {"type": "nudge", "seq": 7})
"""


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


def test_programs_are_answered_while_the_redis_that_counts_their_requests_is_away(
    alice: User, api: Callable[[User], Client], settings: Settings
) -> None:
    settings.IZZY_THROTTLE, settings.REDIS_URL = True, "redis://127.0.0.1:1/0"
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": settings.REDIS_URL,
        }
    }
    assert api(alice).get("/api/v1/conversations/").status_code == 200
    made = api(alice).post(
        "/api/v1/conversations/", {"title": "Still here"}, content_type="application/json"
    )
    assert made.status_code == 201
