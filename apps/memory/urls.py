"""Pages of the memory and the fragments they swap in."""

from typing import Any, cast

from django.urls import path

from .pages import bulk, done, files, graph, notes, purges, quality, review, timeline

app_name = "memory"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
_PAGES = (bulk, done, files, graph, notes, purges, quality, review, timeline)
bulk_, done_, files_, graph_, notes_, purges_, quality_, review_, timeline_ = (
    cast("Any", page) for page in _PAGES
)

urlpatterns = [
    path("memory/", notes_.memories, name="list"),
    path("memory/new/", notes_.create, name="create"),
    path("memory/passages/retry/", notes_.retry, name="capture-retry"),
    path("memory/merge/", bulk_.merge, name="merge"),
    path("memory/ticked/", bulk_.bulk, name="ticked"),
    path("memory/take-back/", done_.take_back, name="take-back"),
    path("memory/review/", review_.queue, name="review"),
    path("memory/contradictions/<str:edge_id>/", review_.settle, name="settle"),
    path("memory/files/", files_.files, name="files"),
    path("memory/files/new/", files_.create, name="file-create"),
    path("memory/files/<str:file_id>/card/", files_.card, name="file-card"),
    path("memory/files/<str:file_id>/read/", files_.read, name="file-read"),
    path("memory/files/<str:file_id>/edit/", files_.edit, name="file-edit"),
    path("memory/files/<str:file_id>/delete/", files_.delete, name="file-delete"),
    path("memory/files/<str:file_id>/restore/", files_.restore, name="file-restore"),
    path("memory/files/<str:file_id>/history/", files_.history, name="file-history"),
    path("memory/files/<str:file_id>/undo/", files_.undo, name="file-undo"),
    path("memory/files/<str:file_id>/purge/", purges_.file, name="file-purge"),
    path("memory/timeline/", timeline_.timeline, name="timeline"),
    path("memory/graph/", graph_.graph, name="graph"),
    path("memory/graph/<str:memory_id>/link/", graph_.link, name="link"),
    path("memory/graph/<str:memory_id>/unlink/<str:edge_id>/", graph_.unlink, name="unlink"),
    path("memory/quality/", quality_.quality, name="quality"),
    path("memory/purges/", purges_.receipts, name="receipts"),
    path("memory/purges/<str:receipt_id>/", purges_.receipt, name="receipt"),
    path("memory/<str:memory_id>/purge/", purges_.note, name="purge"),
    path("memory/<str:memory_id>/review/", review_.card, name="review-card"),
    path("memory/<str:memory_id>/accept/", review_.accept, name="accept"),
    path("memory/<str:memory_id>/merge/", review_.merge, name="review-merge"),
    path("memory/<str:memory_id>/reject/", review_.reject, name="reject"),
    path("memory/<str:memory_id>/put-back/", review_.put_back, name="put-back"),
    path("memory/<str:memory_id>/card/", notes_.card, name="card"),
    path("memory/<str:memory_id>/edit/", notes_.edit, name="edit"),
    path("memory/<str:memory_id>/delete/", notes_.delete, name="delete"),
    path("memory/<str:memory_id>/restore/", notes_.restore, name="restore"),
    path("memory/<str:memory_id>/archive/", notes_.archive, name="archive"),
    path("memory/<str:memory_id>/history/", notes_.history, name="history"),
    path("memory/<str:memory_id>/undo/", notes_.undo, name="undo"),
]
