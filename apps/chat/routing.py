"""The address of the chat's websocket."""

from django.urls import URLPattern, path

from apps.chat.consumers import ChatConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/chat/", ChatConsumer.as_asgi()),
]
