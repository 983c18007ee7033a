"""Pages of the builds."""

from typing import Any, cast

from django.urls import path

from apps.builder import views

app_name = "builder"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
pages = cast("Any", views)

urlpatterns = [
    path("builds/", pages.builds, name="list"),
    path("builds/new/", pages.new, name="new"),
    path("builds/<str:build_id>/", pages.build, name="build"),
    path("builds/<str:build_id>/transcript/", pages.steps, name="transcript"),
]
