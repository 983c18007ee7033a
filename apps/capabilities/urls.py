"""Pages of the capabilities."""

from typing import Any, cast

from django.urls import path

from apps.capabilities.pages import changing, lists, opened

app_name = "capabilities"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
index, one, change = (cast("Any", module) for module in (lists, opened, changing))

ONE = "capabilities/<str:capability>/"

urlpatterns = [
    path("capabilities/", index.capabilities, name="list"),
    path("capabilities/new/", change.create, name="new"),
    path("capabilities/install/", change.install, name="install"),
    path("settings/secrets/", index.secrets, name="secrets"),
    path("settings/secrets/<str:secret>/delete/", index.forget, name="secret-delete"),
    path(ONE, one.overview, name="overview"),
    path(f"{ONE}run/", one.run, name="run"),
    path(f"{ONE}files/", one.files, name="files"),
    path(f"{ONE}versions/", one.versions, name="versions"),
    path(f"{ONE}runs/", one.runs, name="runs"),
    path(f"{ONE}runs/<str:execution_id>/", one.execution, name="execution"),
    path(f"{ONE}edit/", change.edit, name="edit"),
    path(f"{ONE}enable/", change.enable, name="enable"),
    path(f"{ONE}disable/", change.disable, name="disable"),
    path(f"{ONE}approve/", change.approve, name="approve"),
    path(f"{ONE}rollback/", change.rollback, name="rollback"),
    path(f"{ONE}retest/", change.retest, name="retest"),
    path(f"{ONE}delete/", change.delete, name="delete"),
    path(f"{ONE}download/", change.download, name="download"),
]
