"""Pages and other addresses of the gateway."""

from typing import Any, cast

from django.urls import path

from apps.gateway import views

app_name = "gateway"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
pages = cast("Any", views)

METADATA = ".well-known/oauth-protected-resource"

urlpatterns = [
    path(METADATA, pages.metadata, name="metadata"),
    path(f"{METADATA}/mcp", pages.metadata, name="metadata-mcp"),
    path("calls/", pages.calls, name="calls"),
    path("calls/<str:call_id>/", pages.decide, name="decide"),
]
