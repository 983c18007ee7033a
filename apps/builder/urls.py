"""Pages of the builds."""

from typing import Any, cast

from django.urls import path

from apps.builder import pages

app_name = "builder"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
views = cast("Any", pages)

urlpatterns = [
    path("builds/", views.builds, name="list"),
    path("builds/new/", views.new, name="new"),
    path("builds/<str:build_id>/", views.build, name="build"),
    path("builds/<str:build_id>/transcript/", views.steps, name="transcript"),
]
