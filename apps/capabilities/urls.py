"""Pages of the capabilities."""

from typing import Any, cast

from django.urls import path

from apps.capabilities.views import actions, detail, editing, listing, secrets

app_name = "capabilities"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
lists, one, act, editor, kept = (
    cast("Any", module) for module in (listing, detail, actions, editing, secrets)
)

ONE = "capabilities/<str:capability>/"

urlpatterns = [
    path("capabilities/", lists.capabilities, name="list"),
    path("capabilities/new/", editor.create, name="new"),
    path("capabilities/install/", editor.install, name="install"),
    path("settings/secrets/", kept.secrets, name="secrets"),
    path("settings/secrets/<str:secret>/delete/", kept.forget, name="secret-delete"),
    path(ONE, one.overview, name="overview"),
    path(f"{ONE}run/", one.run, name="run"),
    path(f"{ONE}files/", one.files, name="files"),
    path(f"{ONE}versions/", one.versions, name="versions"),
    path(f"{ONE}runs/", one.runs, name="runs"),
    path(f"{ONE}runs/<str:execution_id>/", one.execution, name="execution"),
    path(f"{ONE}edit/", editor.edit, name="edit"),
    path(f"{ONE}enable/", act.enable, name="enable"),
    path(f"{ONE}disable/", act.disable, name="disable"),
    path(f"{ONE}approve/", act.approve, name="approve"),
    path(f"{ONE}rollback/", act.rollback, name="rollback"),
    path(f"{ONE}retest/", act.retest, name="retest"),
    path(f"{ONE}delete/", act.delete, name="delete"),
    path(f"{ONE}download/", act.download, name="download"),
]
