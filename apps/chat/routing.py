"""The address of the chat's websocket."""

from typing import Any, cast

from django.urls import URLPattern, path

from apps.chat.consumers import ChatConsumer
from apps.chat.socket_limits import SOCKETS_PER_USER, FrameLimit, SocketsAtOnce

chat_socket = SocketsAtOnce(
    FrameLimit(ChatConsumer.as_asgi()), lambda scope: getattr(scope.get("user"), "pk", None), SOCKETS_PER_USER
)

websocket_urlpatterns: list[URLPattern] = [
    path("ws/chat/", cast("Any", chat_socket)),
]
