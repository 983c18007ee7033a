"""Pages of the agent."""

from typing import Any, cast

from django.urls import path

from apps.agent import views

app_name = "agent"

# The view takes a SignedInRequest, which the middleware guarantees and Django's types cannot know.
pages = cast("Any", views)

urlpatterns = [path("usage/", pages.usage, name="usage")]
