"""Pages of the memory and the fragments they swap in."""

from typing import Any, cast

from django.urls import path

from apps.memory.views import cards, listing

app_name = "memory"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
lists, notes = (cast("Any", module) for module in (listing, cards))

urlpatterns = [
    path("memory/", lists.memories, name="list"),
    path("memory/new/", lists.create, name="create"),
    path("memory/<str:memory_id>/card/", notes.card, name="card"),
    path("memory/<str:memory_id>/edit/", notes.edit, name="edit"),
    path("memory/<str:memory_id>/delete/", notes.delete, name="delete"),
    path("memory/<str:memory_id>/restore/", notes.restore, name="restore"),
    path("memory/<str:memory_id>/archive/", notes.archive, name="archive"),
    path("memory/<str:memory_id>/history/", notes.history, name="history"),
    path("memory/<str:memory_id>/undo/", notes.undo, name="undo"),
]
