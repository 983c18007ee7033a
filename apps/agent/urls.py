"""Pages of the agent."""

from typing import Any, cast

from django.urls import path

from apps.agent import views

app_name = "agent"

# The view takes a SignedInRequest, which the middleware guarantees and Django's types cannot know.
pages = cast("Any", views)

urlpatterns = [
    path("usage/", pages.usage, name="usage"),
    path("grants/", pages.grants, name="grants"),
    path("grants/<str:grant_id>/remove/", pages.grant_take_back, name="grant_take_back"),
]
