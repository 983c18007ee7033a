"""Izzy as an app of the browser: its manifest, its service worker, and the page for when the server cannot be reached."""

import hashlib
import json

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

SHELL = (
    "css/tokens.css",
    "css/base.css",
    "css/components.css",
    "css/shell.css",
    "js/theme.js",
    "js/offline.js",
    "img/icon.svg",
)
"""Files of the page that says that it is offline; nothing else is kept by the browser."""


@login_not_required
@require_GET
def manifest(request: HttpRequest) -> JsonResponse:
    """The web app manifest."""
    icons = [
        {
            "src": static(f"img/icon-{name}.png"),
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for name, size, purpose in (("192", 192, "any"), ("512", 512, "any"), ("mask", 512, "maskable"))
    ]
    body = {
        "name": "Izzy",
        "short_name": "Izzy",
        "description": "A personal assistant that remembers you.",
        "id": "/",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#faf9f6",
        "theme_color": "#0e6a5c",
        "icons": icons,
        "shortcuts": [
            {"name": "New conversation", "url": reverse("chat:home")},
            {"name": "Memories", "url": reverse("memory:list")},
        ],
    }
    return JsonResponse(body, content_type="application/manifest+json")


@login_not_required
@never_cache
@require_GET
def service_worker(request: HttpRequest) -> HttpResponse:
    """The service worker: it keeps the offline page and what that needs, under a name that changes with them."""
    kept = [reverse("offline"), *map(static, SHELL)]
    page = render(request, "site/offline.html").content
    name = hashlib.sha256(page + json.dumps(kept).encode()).hexdigest()[:12]
    context = {"name": f"izzy-{name}", "kept": json.dumps(kept), "offline": reverse("offline")}
    return render(request, "site/service-worker.js", context, content_type="text/javascript")


@login_not_required
@require_GET
def offline(request: HttpRequest) -> HttpResponse:
    """The page that the service worker shows where the server cannot be reached; the same for everybody."""
    return render(request, "site/offline.html")
