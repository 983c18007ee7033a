"""Health checks that the apps register for `doctor` and `/readyz`, those of the base, and system checks of unsafe settings."""

import logging
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.files.storage import InvalidStorageError, storages
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from apps.core import traces
from apps.core.db.pool import database_file
from apps.core.db.troubles import NOT_SET_UP, Trouble, explain, stale_message
from apps.core.http.addresses import AddressRefused, private_hosts
from apps.core.models import InstanceState

logger = logging.getLogger(__name__)


class State(StrEnum):
    WORKS = "works"
    NOT_SET_UP = "not set up"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CheckResult:
    ok: bool  # whether it works
    message: str  # one sentence about what is
    hint: str = ""  # where it does not work: what to do about it
    is_set_up: bool = True

    @property
    def state(self) -> State:
        if self.ok:
            return State.WORKS
        return State.BROKEN if self.is_set_up else State.NOT_SET_UP


def not_set_up(message: str, *, gives: str, how: str) -> CheckResult:
    """The result for a part that Izzy does without: `gives` says in a sentence what it would add, `how` how to get it."""
    return CheckResult(False, message, f"{gives} {how}", is_set_up=False)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    function: Callable[[], CheckResult]
    essential: bool


_checks: dict[str, Check] = {}
_recent: dict[str, tuple[float, CheckResult]] = {}

RECENT_SECONDS = 3.0


def register_check(name: str, function: Callable[[], CheckResult], *, essential: bool = False) -> None:
    """Register a synchronous check that takes at most a second or so.

    Where an essential one finds something broken `/readyz` answers 503. Registering a name again replaces it.
    """
    _checks[name] = Check(name, function, essential)


def checks() -> list[Check]:
    return sorted(_checks.values(), key=lambda check: (not check.essential, check.name))


def run_check(check: Check) -> CheckResult:
    try:
        return check.function()
    except DatabaseError as error:
        if trouble := explain(error):
            return CheckResult(False, trouble.message, trouble.hint)
        logger.exception("health check %s failed", check.name)
        return CheckResult(False, f"The database does not answer: {error}.", "See the server's log.")
    except (
        Exception
    ) as error:  # a check that fails is a finding like any other; the others are still to be reported
        logger.exception("health check %s failed", check.name)
        return CheckResult(
            False, f"The check itself failed: {type(error).__name__}.", "See the server's log."
        )


def recent_result(check: Check) -> CheckResult:
    """The check's outcome, at most three seconds old: for addresses that anybody may ask as often as they like."""
    now = time.monotonic()
    known = _recent.get(check.name)
    if known is None or now - known[0] > RECENT_SECONDS:
        known = _recent[check.name] = (now, run_check(check))
    return known[1]


IZZY = "izzy"
"""The tag of the checks that `serve` runs before it starts; an error stops it."""

UNNAMED = {
    "IZZY_ALLOWED_HOSTS",
    "IZZY_DEBUG",
    "IZZY_ENV_FILE",
    "IZZY_LOG_LEVEL",
    "IZZY_SECRET_KEY",
    "IZZY_PARENT_FD",
    "IZZY_GATE_FD",
    "IZZY_HEARTBEAT_FD",
    "IZZY_URL",
    "IZZY_TOKEN",  # both of the command line
}
"""Variables of ours that no setting is named after."""

LOCAL_HOSTS = {"127.0.0.1", "::1", "localhost"}
LOW_DISK_BYTES = 200_000_000
ENDED = "ended"
"""InstanceState: by process how often `serve` had to end it since it did not answer, when last, and why."""
ENDED_LATELY = timedelta(days=1)


def check_database() -> CheckResult:
    """It answers and its tables are those of this version: looked at once, and again when they have changed."""
    global _sound
    try:
        state = _state()
        if state == _sound:
            return _up_to_date()
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        trouble = explain(error) or Trouble(
            f"The database does not answer: {error}.", "Look at IZZY_DATA_DIR and the disk."
        )
        return CheckResult(False, trouble.message, trouble.hint)
    if len(missing) == len(executor.loader.graph.nodes):
        return CheckResult(False, NOT_SET_UP.message, NOT_SET_UP.hint)
    if missing:
        return CheckResult(False, f"{len(missing)} migrations are missing.", "Run `manage.py migrate`.")
    if stale := stale_message():
        return CheckResult(False, stale, "See *Updates* in docs/operations.md.")
    _sound = state
    return _up_to_date()


def _state() -> tuple[Any, ...]:
    """All that decides whether the tables are those of this version: how they were made, and by which migrations."""
    made = cast("Any", connection).tables_state()
    if not any("django_migrations" in str(name) for name, *_ in made):
        return (made,)
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return made, tuple(cursor.fetchall())


def _up_to_date() -> CheckResult:
    return CheckResult(True, f"{connection.display_name} answers and is up to date.")


_sound: tuple[Any, ...] | None = None
"""The state of the database that was found to be sound."""


def check_data_directory() -> CheckResult:
    """This user may write the data directory and the database file."""
    folder, file = Path(settings.IZZY_DATA_DIR), database_file()
    for place in [folder, file] if file is not None and file.exists() else [folder]:
        if not os.access(place, os.W_OK):
            hint = "Give it to this user or set IZZY_DATA_DIR."
            return CheckResult(False, f"{place} cannot be written.", hint)
    return CheckResult(True, f"{settings.IZZY_DATA_DIR} can be written.")


def check_disk() -> CheckResult:
    """Room for the database to grow. Little of it is not yet an outage."""
    try:
        free = shutil.disk_usage(settings.IZZY_DATA_DIR).free
    except OSError as error:
        return CheckResult(
            False, f"The disk does not say how full it is: {error.strerror}.", "See IZZY_DATA_DIR."
        )
    if free < LOW_DISK_BYTES:
        message = f"Only {free // 1_000_000} MB are free in {settings.IZZY_DATA_DIR}."
        return CheckResult(False, message, "Make room: when nothing is left, nothing can be saved.")
    return CheckResult(True, f"{free / 1_000_000_000:,.1f} GB are free.")


def check_redis() -> CheckResult:
    """Where REDIS_URL is set, Redis answers."""
    if not settings.REDIS_URL:
        return not_set_up(
            "Web processes hear of each other through the database."
            if settings.IZZY_WEB_PROCESSES > 1
            else "Messages between tabs stay within this process.",
            gives="With Redis several web processes share them at once, and the cache.",
            how="Set REDIS_URL; one process needs none.",
        )
    # Here and not above: the client takes a quarter of a second to import, and most do not use it.
    from redis import Redis
    from redis.exceptions import RedisError

    try:
        Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, socket_timeout=2).ping()
    except ValueError:  # what it says may hold a part of the password
        return CheckResult(False, "REDIS_URL is no address of a Redis.", "Write redis://host:6379/0.")
    except RedisError as error:
        return CheckResult(
            False, f"Redis does not answer: {error}.", "Look at REDIS_URL, or leave it empty."
        )
    return CheckResult(True, "Redis answers.")


def check_files() -> CheckResult:
    """Where IZZY_FILES_URL is set, the store of files that hosts share answers."""
    try:
        storages["shared"].exists("izzy")
    except (InvalidStorageError, ImportError):
        hint = "Install it with `make extra NAME=s3`."
        return CheckResult(False, "IZZY_FILES_URL is set, but what speaks S3 is missing.", hint)
    except OSError:
        hint = "Look at IZZY_FILES_URL, the store and its keys. Until then tools that were built cannot be run."
        return CheckResult(False, "The store of files does not answer.", hint)
    return CheckResult(True, "The store of files answers.")


def check_traces() -> CheckResult:
    """Where IZZY_OTEL_ENDPOINT is set, the optional part that sends traces is there."""
    if traces.missing():
        hint = "Install it with `make extra NAME=otel`."
        return CheckResult(False, "IZZY_OTEL_ENDPOINT is set, but OpenTelemetry is missing.", hint)
    return CheckResult(True, "Traces go to IZZY_OTEL_ENDPOINT.")


def process_ended(name: str, reason: str) -> None:
    """Keep for `doctor` that `serve` ended a process which no longer answered."""
    # A database that does not take it must not keep the process from being started again.
    with suppress(DatabaseError), transaction.atomic():
        state, _ = InstanceState.objects.get_or_create(key=ENDED)
        times = state.value.get(name, {}).get("times", 0) + 1
        state.value[name] = {"times": times, "at": timezone.now().isoformat(), "reason": reason}
        state.save()


def check_processes() -> CheckResult:
    """Whether `serve` had to end a process within the last day since it did not answer."""
    state = InstanceState.objects.filter(key=ENDED).first()
    ended = [] if state is None else sorted(state.value.items(), key=lambda item: str(item[1]["at"]))
    number = settings.IZZY_WEB_PROCESSES
    shared = "" if number == 1 else f" {number} web processes share the port."
    if not ended:
        return CheckResult(True, f"No process had to be ended.{shared}")
    name, last = ended[-1]
    at = datetime.fromisoformat(last["at"])
    often = f" ({last['times']:,} times so far)" if last["times"] > 1 else ""
    message = f"The {name} process was ended at {at:%Y-%m-%d %H:%M} UTC{often}: {last['reason']}."
    hint = (
        "The log of `serve` shows what it was doing, after the line that says so. It was started again."
    )
    return CheckResult(timezone.now() - at > ENDED_LATELY, message, hint)


@register(IZZY)
def unsafe_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Warnings about what is fine on one's own machine and is not on a network."""
    exposed = settings.IZZY_HOST not in LOCAL_HOSTS
    findings = [
        (
            exposed and settings.DEBUG,
            "W001",
            "IZZY_DEBUG is on while Izzy listens beyond this machine.",
            "Turn IZZY_DEBUG off: error pages show settings.",
        ),
        (
            exposed and not settings.IZZY_PUBLIC_URL.startswith("https://"),
            "W002",
            "Izzy listens beyond this machine without TLS: passwords travel in the clear.",
            "Put a TLS proxy in front and set IZZY_PUBLIC_URL=https://…, see docs/security.md.",
        ),
        (
            exposed and not settings.IZZY_THROTTLE,
            "W003",
            "IZZY_THROTTLE is off while Izzy listens beyond this machine.",
            "Passwords can be guessed without limit.",
        ),
        (
            settings.IZZY_LOG_LIBRARIES == "DEBUG",
            "W007",
            "IZZY_LOG_LIBRARIES=DEBUG writes what users said, their notes and keys into the log.",
            "Take it away, and delete that log.",
        ),
        (
            settings.IZZY_BEHIND_PROXY and not settings.IZZY_PUBLIC_URL,
            "W004",
            "IZZY_BEHIND_PROXY is on without IZZY_PUBLIC_URL.",
            "Set the address under which the proxy is reached.",
        ),
    ]
    return [
        Warning(message, hint=hint, id=f"izzy.{code}")
        for is_so, code, message, hint in findings
        if is_so
    ]


@register(IZZY)
def open_data_directory(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Where the operator made the folder, it may be open to others."""
    folder, file = Path(settings.IZZY_DATA_DIR), database_file()
    try:
        is_open = (
            file is not None
            and folder.stat().st_mode & stat.S_IXOTH
            and file.stat().st_mode & stat.S_IROTH
        )
    except OSError:
        return []
    if not is_open:
        return []
    message = f"Every user of this machine can read {file}."
    return [Warning(message, hint=f"Close it: chmod -R go= {folder}", id="izzy.W005")]


@register(IZZY)
def unknown_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A name that was mistyped would otherwise do nothing, and say nothing."""
    names = sorted(name for name in os.environ if name.startswith("IZZY_"))
    unknown = [name for name in names if not hasattr(settings, name) and name not in UNNAMED]
    hint = "Is it mistyped? README.md lists them all."
    return [Warning(f"{name} is no setting of Izzy's.", hint=hint, id="izzy.W006") for name in unknown]


@register(IZZY)
def malformed_private_hosts(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """An entry that is not understood would leave a host closed, or the wrong one open."""
    try:
        private_hosts()
    except AddressRefused as error:
        hint = "Write host, host:port or host:port=address, separated by commas."
        return [Error(f"IZZY_PRIVATE_HOSTS: {error.message}", hint=hint, id="izzy.E001")]
    return []
