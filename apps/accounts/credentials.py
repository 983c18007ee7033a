"""The credentials of connections that stay open, and their end as soon as those no longer hold."""

import asyncio
import json
import logging
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import Error, transaction
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone

from apps.accounts.models import APIToken, User
from apps.core.db.pool import in_db
from apps.core.db.prepared import prepared
from apps.core.errors import IzzyError, NotAuthenticated, Throttled

if TYPE_CHECKING:  # It reads its settings, and with them the services of this app, when it is imported.
    from rest_framework.request import Request

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Within so long a change is noticed that another process made; one of this process at once."""
FOLLOWED_PER_USER = 30
"""Requests of a user that stay open at once in a process. IZZY_THROTTLE=off lifts it."""

_followed: Counter[UUID] = Counter()
_counting = threading.Lock()


@dataclass(frozen=True, slots=True)
class Credentials:
    """A valid API token, or a session of the password that the user had (None: the caller vouches for it)."""

    user_id: UUID
    password: str
    token_id: UUID | None = None
    session_key: str | None = None

    @classmethod
    def of(cls, user: Any, token: APIToken | None, session: Any) -> "Credentials":
        """Credentials of a request or websocket."""
        if token is not None:
            return cls(user.pk, "", token_id=token.pk)
        return cls(user.pk, user.password, session_key=getattr(session, "session_key", None))


def credentials_ended(held: Collection[Credentials]) -> set[Credentials]:
    """Those that do not hold any more. At most three queries however many are asked about."""
    now = timezone.now()
    passwords = dict(_passwords(list({each.user_id for each in held})))
    token_ids = {each.token_id for each in held if each.token_id}
    tokens = set(_valid(list(token_ids), now)) if token_ids else set()
    keys = {each.session_key for each in held if each.session_key}
    alive = Session.objects.filter(session_key__in=keys, expire_date__gt=now)
    sessions = set(alive.values_list("session_key", flat=True)) if keys else set()

    def holds(each: Credentials) -> bool:
        if each.token_id is not None:
            return each.user_id in passwords and each.token_id in tokens
        return passwords.get(each.user_id) == each.password and each.session_key in {None, *sessions}

    return {each for each in held if not holds(each)}


@prepared
def _passwords(user_ids: list[UUID]) -> QuerySet[User, tuple[UUID, str]]:
    return User.objects.filter(id__among=user_ids, is_active=True).values_list("id", "password")


@prepared
def _valid(token_ids: list[UUID], now: datetime) -> QuerySet[APIToken, UUID]:
    valid = APIToken.objects.unscoped().filter(id__among=token_ids, revoked_at=None)
    return valid.exclude(expires_at__lte=now).values_list("id", flat=True)


class CredentialsWatch:
    """Looks after the credentials of all open connections of one event loop, while there are any."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._held: dict[Credentials, set[asyncio.Event]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def hold(self, credentials: Credentials) -> Iterator[asyncio.Event]:
        """An event that is set once the credentials have ended."""
        ended = asyncio.Event()
        self._held.setdefault(credentials, set()).add(ended)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield ended
        finally:
            events = self._held[credentials]
            events.discard(ended)
            if not events:
                del self._held[credentials]

    async def _look(self) -> None:
        while self._held:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.changed.wait()
            self.changed.clear()
            try:
                for credentials in await in_db(credentials_ended, list(self._held)):
                    for ended in self._held.get(credentials, ()):
                        ended.set()
            except Error as error:  # Asked again at once: whoever has to go must not stay for good.
                logger.warning("could not see which connections may stay: %s", error)


_watches: "WeakKeyDictionary[asyncio.AbstractEventLoop, CredentialsWatch]" = WeakKeyDictionary()


def credentials_watch() -> CredentialsWatch:
    """The watch of the running event loop."""
    return _watches.setdefault(asyncio.get_running_loop(), CredentialsWatch())


def access_changed() -> None:
    """Have open connections looked at as soon as the transaction is committed. Call it where access ends."""

    def look() -> None:
        for loop, watch in list(_watches.items()):
            with suppress(RuntimeError):  # A loop that was closed meanwhile.
                loop.call_soon_threadsafe(watch.changed.set)

    transaction.on_commit(look)


def follow_check(user_id: UUID) -> None:
    """Call it before anything is done for a request that then stays open. Raises Throttled."""
    if settings.IZZY_THROTTLE and _followed[user_id] >= FOLLOWED_PER_USER:
        raise Throttled(f"At most {FOLLOWED_PER_USER} requests may stay open at once. Close one.")


@contextmanager
def following(user_id: UUID) -> Iterator[None]:
    """Counts a request for as long as it stays open. Raises Throttled."""
    with _counting:
        follow_check(user_id)
        _followed[user_id] += 1
    try:
        yield
    finally:
        with _counting:
            _followed[user_id] -= 1
            if not _followed[user_id]:
                del _followed[user_id]


def event_stream(request: "Request", events: AsyncGenerator[bytes, None]) -> StreamingHttpResponse:
    """Server-sent events, until their end or that of the credentials which `request` came with."""
    token = request.auth if isinstance(request.auth, APIToken) else None
    credentials = Credentials.of(request.user, token, getattr(request, "session", None))
    response = StreamingHttpResponse(_while_held(credentials, events), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def _while_held(
    credentials: Credentials, events: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        try:
            with following(credentials.user_id), credentials_watch().hold(credentials) as ended:
                async with aclosing(_until(ended, events)) as received:
                    async for event in received:
                        yield event
                if ended.is_set():
                    raise NotAuthenticated
        except IzzyError as error:  # The head of the answer has been sent.
            yield server_sent({"type": "error", **error.to_json()})


async def _until(
    ended: asyncio.Event, events: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    ending = asyncio.ensure_future(ended.wait())
    try:
        while True:
            coming = asyncio.ensure_future(anext(events, None))
            try:
                await asyncio.wait({coming, ending}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not coming.done() or ended.is_set():
                    coming.cancel()
                    await asyncio.wait({coming})
            if ended.is_set() or (event := coming.result()) is None:
                return
            yield event
    finally:
        ending.cancel()


def server_sent(event: dict[str, Any], number: int | None = None) -> bytes:
    """One event in the form of text/event-stream, named after its `type`; `number` is what `Last-Event-ID` goes on from."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    line = "" if number is None else f"id: {number}\n"
    return f"event: {event['type']}\n{line}data: {data}\n\n".encode()
