"""Pages of the memory and the fragments they swap in."""

from typing import Any, cast

from django.urls import path

from apps.memory.graph import views as graph
from apps.memory.timeline import views as timeline
from apps.memory.views import (
    cards,
    files,
    listing,
    merging,
    passages,
    purges,
    quality,
    review,
    taking_back,
    ticked,
)

app_name = "memory"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
_MODULES = (listing, cards, files, purges, review, merging, quality, passages, ticked, taking_back)
lists, notes, texts, purging, queue, merges, figures, reading, many, back = (
    cast("Any", module) for module in _MODULES
)
links, times = cast("Any", graph), cast("Any", timeline)

urlpatterns = [
    path("memory/", lists.memories, name="list"),
    path("memory/new/", lists.create, name="create"),
    path("memory/passages/retry/", reading.retry, name="capture-retry"),
    path("memory/merge/", merges.merge, name="merge"),
    path("memory/ticked/", many.ticked, name="ticked"),
    path("memory/take-back/", back.take_back, name="take-back"),
    path("memory/review/", queue.queue, name="review"),
    path("memory/contradictions/<str:edge_id>/", queue.settle, name="settle"),
    path("memory/files/", texts.files, name="files"),
    path("memory/files/new/", texts.create, name="file-create"),
    path("memory/files/<str:file_id>/card/", texts.card, name="file-card"),
    path("memory/files/<str:file_id>/read/", texts.read, name="file-read"),
    path("memory/files/<str:file_id>/edit/", texts.edit, name="file-edit"),
    path("memory/files/<str:file_id>/delete/", texts.delete, name="file-delete"),
    path("memory/files/<str:file_id>/restore/", texts.restore, name="file-restore"),
    path("memory/files/<str:file_id>/history/", texts.history, name="file-history"),
    path("memory/files/<str:file_id>/undo/", texts.undo, name="file-undo"),
    path("memory/files/<str:file_id>/purge/", purging.file, name="file-purge"),
    path("memory/timeline/", times.timeline, name="timeline"),
    path("memory/graph/", links.graph, name="graph"),
    path("memory/graph/<str:memory_id>/link/", links.link, name="link"),
    path("memory/graph/<str:memory_id>/unlink/<str:edge_id>/", links.unlink, name="unlink"),
    path("memory/quality/", figures.quality, name="quality"),
    path("memory/purges/", purging.receipts, name="receipts"),
    path("memory/purges/<str:receipt_id>/", purging.receipt, name="receipt"),
    path("memory/<str:memory_id>/purge/", purging.note, name="purge"),
    path("memory/<str:memory_id>/review/", queue.card, name="review-card"),
    path("memory/<str:memory_id>/accept/", queue.accept, name="accept"),
    path("memory/<str:memory_id>/merge/", queue.merge, name="review-merge"),
    path("memory/<str:memory_id>/reject/", queue.reject, name="reject"),
    path("memory/<str:memory_id>/put-back/", queue.put_back, name="put-back"),
    path("memory/<str:memory_id>/card/", notes.card, name="card"),
    path("memory/<str:memory_id>/edit/", notes.edit, name="edit"),
    path("memory/<str:memory_id>/delete/", notes.delete, name="delete"),
    path("memory/<str:memory_id>/restore/", notes.restore, name="restore"),
    path("memory/<str:memory_id>/archive/", notes.archive, name="archive"),
    path("memory/<str:memory_id>/history/", notes.history, name="history"),
    path("memory/<str:memory_id>/undo/", notes.undo, name="undo"),
]
