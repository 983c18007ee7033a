"""The websocket of the chat: frames of DESIGN.md's section 7 in, events out."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import UUID

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error
from django.urls import URLPattern, path

from apps.accounts.access import require_scope
from apps.accounts.credentials import Credentials, credentials_ended, credentials_watch
from apps.accounts.models import APIToken, User
from apps.chat.conversations.selectors import conversation_get
from apps.chat.stream.events import queued_event
from apps.chat.stream.limits import SOCKETS_PER_USER, FrameLimit, SocketsAtOnce
from apps.chat.stream.snapshot import Start, start_for, start_now
from apps.chat.stream.subscription import Subscription
from apps.chat.turns import services
from apps.chat.turns.branches import branch_choose
from apps.chat.turns.scheduler import Scheduler, scheduler
from apps.core.db.pool import in_db
from apps.core.db.troubles import unavailable
from apps.core.db.writing import writing_for
from apps.core.errors import InvalidInput, IzzyError, TooLarge, Unavailable
from apps.core.http.edge import WRITABLE
from apps.core.ids import parse_id
from apps.core.log_ids import log_ids_add

logger = logging.getLogger(__name__)
MAX_FRAME_CHARS = 500_000
"""A message may have 100,000 characters, each up to six in JSON's escapes, and this leaves room for most of them."""
MAX_SUBSCRIPTIONS = 8
CLOSE_SIGNED_OUT = 4401
CLOSE_TOO_SLOW = 4408
READING = frozenset({"open", "close", "ping"})
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class ClientFrame:
    """One frame: its type and its other keys, not yet checked but for the helpers below."""

    type: str
    values: dict[str, Any]

    @property
    def client_id(self) -> str | None:
        """The client's name for the message, to be repeated in an error."""
        value = self.values.get("client_id")
        fits = isinstance(value, str) and len(value) <= 64 and value.isprintable()
        return value if fits else None

    @property
    def conversation_id(self) -> UUID:
        """The conversation it is about. NotFound when malformed or missing."""
        return parse_id(self.values.get("conversation"))

    @property
    def seq(self) -> int | None:
        """The newest event the client knows, 0 for none; None where it wants a snapshot. InvalidInput for what is
        no whole number."""
        value = self.values.get("seq")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput("seq must be a whole number.", code="wrong_type", field="seq")
        return max(0, min(value, 2**62))

    @property
    def use_memory(self) -> bool | None:
        return self._yes_or_no("use_memory")

    @property
    def spoken(self) -> bool:
        return self._yes_or_no("spoken") or False

    def _yes_or_no(self, field: str) -> bool | None:
        value = self.values.get(field)
        if value is not None and not isinstance(value, bool):
            raise InvalidInput(f"{field} must be true or false.", code="wrong_type", field=field)
        return value


def parse_frame(text: str | None) -> ClientFrame:
    """The frame in a websocket's text message (None: a binary one). InvalidInput, TooLarge."""
    if text is None:
        raise InvalidInput("Send text frames with JSON.", code="malformed_frame")
    if len(text) > MAX_FRAME_CHARS:
        raise TooLarge(f"A frame may have {MAX_FRAME_CHARS:,} characters.", limit=MAX_FRAME_CHARS)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The frame is not valid JSON.", code="malformed_frame") from None
    if not isinstance(values, dict):
        raise InvalidInput("A frame is a JSON object.", code="malformed_frame")
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        raise InvalidInput("A frame has a type.", code="unknown_type", field="type")
    return ClientFrame(kind, values)


class ChatConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """One client. Its user is known and its Origin checked before it gets here (apps.accounts.access).

    Every refused frame is answered by `{type: "error", code, message, extra, client_id?}`; the socket stays open.
    """

    user: User
    token: APIToken | None
    scheduler: Scheduler
    channel_layer_alias = (
        ""  # Events come by the hub. With a layer it would subscribe in Redis before anything else.
    )

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Ends what hangs on the socket also where `disconnect` is never reached: the server cancels an application
        that has not worked off its frames ten seconds after its client left."""
        try:
            with writing_for(getattr(scope.get("user"), "pk", None)):
                await super().__call__(scope, receive, send)
        finally:
            self._leave()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """As the one of channels, without its way to the one thread of all sockets: connections are looked after by `in_db`."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(code=CLOSE_SIGNED_OUT)
            return
        self.user = user
        log_ids_add(user=user.pk)
        self.token = self.scope.get("token")
        self.scheduler = scheduler()
        self.scheduler.start()
        self.followed: dict[UUID, tuple[Subscription, asyncio.Task[None]]] = {}
        self.credentials = Credentials.of(user, self.token, self.scope.get("session"))
        self.watching = ExitStack()
        self.ended = self.watching.enter_context(credentials_watch().hold(self.credentials))
        self.guard = asyncio.ensure_future(self._guard())
        await self.accept()

    def _leave(self) -> None:
        if hasattr(self, "guard"):
            self.guard.cancel()
            self.watching.close()
            self._unfollow_all()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        client_id: str | None = None
        try:
            frame = parse_frame(text_data)
            client_id = frame.client_id
            handler = HANDLERS.get(frame.type)
            if handler is None:
                raise InvalidInput(
                    f"There is no frame type {frame.type[:40]!r}.", code="unknown_type", field="type"
                )
            require_scope(self.token, "read" if frame.type in READING else "write")
            held = self.credentials
            if self.ended.is_set() or held in await in_db(credentials_ended, [held]):
                await self.close(code=CLOSE_SIGNED_OUT)
                raise StopConsumer
            await handler(self, frame)
        except IzzyError as error:
            await self._refuse(error, client_id)
        except Error as error:
            if (known := unavailable(error)) is None:
                logger.exception("a frame could not be handled: the database failed")
                known = Unavailable("The database did not answer. Try again.")
            await self._refuse(known, client_id)

    # --- Frames ------------------------------------------------------------------------------------------------

    async def open(self, frame: ClientFrame) -> None:
        """Subscribes: what came after `seq`, or a snapshot, then everything as it happens."""
        await self._follow(frame.conversation_id, frame.seq)

    async def message(self, frame: ClientFrame) -> None:
        """Stores a message and starts its turn; `turn_queued` acknowledges it."""
        sent = await in_db(
            services.message_send,
            user_id=self.user.id,
            text=frame.values.get("text"),
            conversation=frame.values.get("conversation"),
            client_id=frame.values.get("client_id"),
            replaces=frame.values.get("replaces"),
            use_memory=frame.use_memory,
            attachments=frame.values.get("attachments"),
            spoken=frame.spoken,
        )
        await self._send_on(sent)

    async def retry(self, frame: ClientFrame) -> None:
        """Sends the newest message again in place of its old answer."""
        sent = await in_db(
            services.turn_retry,
            user_id=self.user.id,
            conversation_id=frame.values.get("conversation"),
            client_id=frame.values.get("client_id"),
            replaces=frame.values.get("replaces"),
        )
        await self._send_on(sent)

    async def branch(self, frame: ClientFrame) -> None:
        """Brings a version of a message back, with what followed it; a `branch` event says that it is in force."""
        conversation_id = frame.conversation_id
        await in_db(
            branch_choose,
            user_id=self.user.id,
            conversation_id=conversation_id,
            turn_id=frame.values.get("turn"),
        )
        await self.scheduler.schedule(conversation_id)

    async def stop(self, frame: ClientFrame) -> None:
        """Stops the running turn."""
        conversation_id = frame.conversation_id
        await in_db(services.turn_stop, user_id=self.user.id, conversation_id=conversation_id)
        await self.scheduler.schedule(conversation_id)

    async def answer(self, frame: ClientFrame) -> None:
        """Answers a question; the turn goes on."""
        answered = await in_db(
            services.question_answer,
            user_id=self.user.id,
            tool_call_id=frame.values.get("id"),
            text=frame.values.get("text"),
        )
        await self.scheduler.schedule(answered)

    async def approve(self, frame: ClientFrame) -> None:
        """Allows or declines a tool call; the turn goes on."""
        decided = await in_db(
            services.approval_decide,
            user_id=self.user.id,
            tool_call_id=frame.values.get("id"),
            decision=frame.values.get("decision"),
        )
        await self.scheduler.schedule(decided)

    async def unsubscribe(self, frame: ClientFrame) -> None:
        """Ends a subscription."""
        self._unfollow(frame.conversation_id)

    async def ping(self, frame: ClientFrame) -> None:
        """For clients that cannot send websocket pings."""
        await self._send({"type": "pong"})

    # --- Subscriptions -----------------------------------------------------------------------------------------

    async def _send_on(self, sent: services.Sent) -> None:
        """Has the turn of a sent message started, and follows its conversation from here on."""
        conversation_id = sent.conversation_id
        if sent.repeated:
            queued, seq = await in_db(queued_event, conversation_id, sent.turn_id)
            if queued is not None:
                await self._send(queued.frame(conversation_id))
            if conversation_id not in self.followed:  # a snapshot would leave out what acknowledges it
                await self._follow(conversation_id, seq if queued is None else None)
        elif conversation_id not in self.followed:
            await self._begin(conversation_id, partial(start_now, self.user.id, conversation_id))
        await self.scheduler.schedule(conversation_id)

    async def _follow(self, conversation_id: UUID, seq: int | None) -> None:
        await in_db(conversation_get, self.user.id, conversation_id)
        await self._begin(conversation_id, partial(start_for, self.user.id, conversation_id, seq))

    async def _begin(self, conversation_id: UUID, start: Callable[[], Start]) -> None:
        """A subscription that could not begin ends: it would only gather what nobody gets."""
        self._unfollow(conversation_id)
        while len(self.followed) >= MAX_SUBSCRIPTIONS:  # the one that was begun first ends
            self._unfollow(next(iter(self.followed)))
        watcher = self.scheduler.hub.join(conversation_id, html=True)
        self.followed[conversation_id] = (watcher, asyncio.ensure_future(self._pass_on(watcher)))
        try:
            await self.scheduler.flush(conversation_id)
            await self.scheduler.hub.begin(watcher, start)
        except (IzzyError, Error):
            self._unfollow(conversation_id)
            raise

    async def _pass_on(self, watcher: Subscription) -> None:
        """A client that does not keep up gets the next frame when it has taken this one; what comes meanwhile is put together."""
        writable = self.scope.get("extensions", {}).get(WRITABLE, {}).get("event")
        while not watcher.lagged:
            await self._send(await watcher.next())
            if writable is not None and not writable.is_set():
                await writable.wait()
        await self.close(code=CLOSE_TOO_SLOW)

    def _unfollow(self, conversation_id: UUID) -> None:
        if (following := self.followed.pop(conversation_id, None)) is not None:
            watcher, task = following
            task.cancel()
            self.scheduler.hub.leave(watcher)

    def _unfollow_all(self) -> None:
        for conversation_id in list(self.followed):
            self._unfollow(conversation_id)

    # --- Who and how -------------------------------------------------------------------------------------------

    async def _guard(self) -> None:
        """Closes the socket once its user has signed out, was deactivated, or lost the token."""
        await self.ended.wait()
        self._unfollow_all()
        await self.close(code=CLOSE_SIGNED_OUT)

    async def _refuse(self, error: IzzyError, client_id: str | None) -> None:
        named = {} if client_id is None else {"client_id": client_id}
        await self._send({"type": "error", **error.to_json(), **named})

    async def _send(self, frame: dict[str, Any]) -> None:
        await self.send(text_data=_encoded(frame))


HANDLERS: dict[str, Callable[[ChatConsumer, ClientFrame], Awaitable[None]]] = {
    "open": ChatConsumer.open,
    "close": ChatConsumer.unsubscribe,
    "message": ChatConsumer.message,
    "retry": ChatConsumer.retry,
    "branch": ChatConsumer.branch,
    "stop": ChatConsumer.stop,
    "answer": ChatConsumer.answer,
    "approve": ChatConsumer.approve,
    "ping": ChatConsumer.ping,
}
chat_socket = SocketsAtOnce(
    FrameLimit(ChatConsumer.as_asgi()),
    lambda scope: getattr(scope.get("user"), "pk", None),
    SOCKETS_PER_USER,
)
websocket_urlpatterns: list[URLPattern] = [
    path("ws/chat/", cast("Any", chat_socket)),
]
