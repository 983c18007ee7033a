"""Health checks of the base: database, data directory, Redis; and system checks of unsafe settings."""

import os
import shutil
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from apps.core.addresses import AddressRefused, private_hosts
from apps.core.health import CheckResult

LOCAL_HOSTS = {"127.0.0.1", "::1", "localhost"}
LOW_DISK_BYTES = 200_000_000


def check_database() -> CheckResult:
    """It answers and its tables are those of this version."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return CheckResult(
            False, f"The database does not answer: {error}.", "Look at IZZY_DATA_DIR and the disk."
        )
    if missing:
        return CheckResult(False, f"{len(missing)} migrations are missing.", "Run `manage.py migrate`.")
    return CheckResult(True, f"{connection.vendor} answers and is up to date.")


def check_data_directory() -> CheckResult:
    folder = settings.IZZY_DATA_DIR
    if not os.access(folder, os.W_OK):
        return CheckResult(
            False, f"{folder} cannot be written.", "Give it to this user or set IZZY_DATA_DIR."
        )
    free = shutil.disk_usage(folder).free
    if free < LOW_DISK_BYTES:
        return CheckResult(
            False, f"Only {free // 1_000_000} MB are free in {folder}.", "Make room on the disk."
        )
    return CheckResult(True, f"{folder} can be written.")


def check_redis() -> CheckResult:
    """Where REDIS_URL is set, Redis answers."""
    if not settings.REDIS_URL:
        return CheckResult(True, "Not used: messages between tabs stay within this process.")
    # Here and not above: the client takes a quarter of a second to import, and most do not use it.
    from redis import Redis
    from redis.exceptions import RedisError

    try:
        Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, socket_timeout=2).ping()
    except (RedisError, ValueError) as error:
        return CheckResult(False, f"Redis does not answer: {error}.", "Look at REDIS_URL, or leave it empty.")
    return CheckResult(True, "Redis answers.")


@register
def unsafe_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Warnings about what is fine on one's own machine and is not on a network."""
    found: list[CheckMessage] = []
    exposed = settings.IZZY_HOST not in LOCAL_HOSTS
    if exposed and settings.DEBUG:
        message = "IZZY_DEBUG is on while Izzy listens beyond this machine."
        found.append(Warning(message, hint="Turn IZZY_DEBUG off: error pages show settings.", id="izzy.W001"))
    if exposed and not settings.IZZY_PUBLIC_URL.startswith("https://"):
        message = "Izzy listens beyond this machine without TLS: passwords travel in the clear."
        hint = "Put a TLS proxy in front and set IZZY_PUBLIC_URL=https://…, see docs/security.md."
        found.append(Warning(message, hint=hint, id="izzy.W002"))
    if exposed and not settings.IZZY_THROTTLE:
        message = "IZZY_THROTTLE is off while Izzy listens beyond this machine."
        found.append(Warning(message, hint="Passwords can be guessed without limit.", id="izzy.W003"))
    if settings.IZZY_BEHIND_PROXY and not settings.IZZY_PUBLIC_URL:
        message = "IZZY_BEHIND_PROXY is on without IZZY_PUBLIC_URL."
        hint = "Set the address under which the proxy is reached."
        found.append(Warning(message, hint=hint, id="izzy.W004"))
    return found


@register
def malformed_private_hosts(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """An entry that is not understood would leave a host closed, or the wrong one open."""
    try:
        private_hosts()
    except AddressRefused as error:
        hint = "Write host, host:port or host:port=address, separated by commas."
        return [Error(f"IZZY_PRIVATE_HOSTS: {error.message}", hint=hint, id="izzy.E001")]
    return []
