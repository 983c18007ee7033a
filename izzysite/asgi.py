"""The ASGI application: the Messages proxy, static files and the limit on bodies in front, then Django and the websockets."""

import os
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "izzysite.settings")

import django

django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import WebsocketDenier  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import re_path  # noqa: E402

from apps.accounts.access import OriginOrToken  # noqa: E402
from apps.chat.consumers import websocket_urlpatterns  # noqa: E402
from apps.chat.stream.limits import SOCKETS_PER_ADDRESS, SocketsAtOnce  # noqa: E402
from apps.chat.turns.scheduler import WithRunner  # noqa: E402
from apps.core.http.clients import peer_ip  # noqa: E402
from apps.core.http.edge import MESSAGES_PREFIX, body_limit  # noqa: E402
from apps.core.http.observed import Observed  # noqa: E402
from apps.core.jobs.running import data_directory_hold  # noqa: E402
from apps.gateway.mcp.http import PATH as MCP_PATH  # noqa: E402
from apps.gateway.mcp.http import WithMCP  # noqa: E402
from apps.gateway.proxy.app import MessagesProxy  # noqa: E402
from izzysite.asgi_parts import BodyLimit, DjangoHandler, HttpsAlone, Lifespan  # noqa: E402
from izzysite.static_files import StaticFiles  # noqa: E402

data_directory_hold(Path(settings.IZZY_DATA_DIR))  # under whichever server

websocket_router = URLRouter(
    [*websocket_urlpatterns, re_path("", cast("Any", WebsocketDenier.as_asgi()))]
)
websocket_application = SocketsAtOnce(
    OriginOrToken(AuthMiddlewareStack(websocket_router), websocket_router), peer_ip, SOCKETS_PER_ADDRESS
)

application = Observed(
    WithRunner(
        ProtocolTypeRouter(
            {
                "http": HttpsAlone(
                    MessagesProxy(StaticFiles(BodyLimit(WithMCP(DjangoHandler()), body_limit))),
                    MESSAGES_PREFIX,
                    MCP_PATH,
                ),
                "websocket": websocket_application,
                "lifespan": Lifespan(),
            }
        )
    )
)
