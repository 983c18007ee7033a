"""Pages of the memory and the fragments they swap in."""

from django.urls import path

from .pages import bulk, done, files, graph, notes, purges, quality, review, timeline, transfer

app_name = "memory"

urlpatterns = [
    path("memory/", notes.memories, name="list"),
    path("memory/new/", notes.create, name="create"),
    path("memory/passages/retry/", notes.retry, name="capture-retry"),
    path("memory/merge/", bulk.merge, name="merge"),
    path("memory/ticked/", bulk.bulk, name="bulk"),
    path("memory/take-back/", done.take_back, name="take-back"),
    path("memory/review/", review.queue, name="review"),
    path("memory/contradictions/<str:edge_id>/", review.settle, name="settle"),
    path("memory/files/", files.files, name="files"),
    path("memory/files/new/", files.create, name="file-create"),
    path("memory/files/<str:file_id>/card/", files.card, name="file-card"),
    path("memory/files/<str:file_id>/read/", files.read, name="file-read"),
    path("memory/files/<str:file_id>/edit/", files.edit, name="file-edit"),
    path("memory/files/<str:file_id>/delete/", files.delete, name="file-delete"),
    path("memory/files/<str:file_id>/restore/", files.restore, name="file-restore"),
    path("memory/files/<str:file_id>/history/", files.history, name="file-history"),
    path("memory/files/<str:file_id>/undo/", files.undo, name="file-undo"),
    path("memory/files/<str:file_id>/purge/", purges.file, name="file-purge"),
    path("memory/timeline/", timeline.timeline, name="timeline"),
    path("memory/graph/", graph.graph, name="graph"),
    path("memory/graph/<str:memory_id>/link/", graph.link, name="link"),
    path("memory/graph/<str:memory_id>/unlink/<str:edge_id>/", graph.unlink, name="unlink"),
    path("memory/quality/", quality.quality, name="quality"),
    path("settings/data/", transfer.data, name="data"),
    path("settings/data/export/", transfer.export, name="export"),
    path("settings/data/imports/<str:import_id>/", transfer.one, name="import"),
    path("settings/data/imports/<str:import_id>/cancel/", transfer.cancel, name="import-cancel"),
    path("memory/purges/", purges.receipts, name="receipts"),
    path("memory/purges/<str:receipt_id>/", purges.receipt, name="receipt"),
    path("memory/<str:memory_id>/purge/", purges.note, name="purge"),
    path("memory/<str:memory_id>/review/", review.card, name="review-card"),
    path("memory/<str:memory_id>/accept/", review.accept, name="accept"),
    path("memory/<str:memory_id>/merge/", review.merge, name="review-merge"),
    path("memory/<str:memory_id>/reject/", review.reject, name="reject"),
    path("memory/<str:memory_id>/put-back/", review.put_back, name="put-back"),
    path("memory/<str:memory_id>/card/", notes.card, name="card"),
    path("memory/<str:memory_id>/edit/", notes.edit, name="edit"),
    path("memory/<str:memory_id>/delete/", notes.delete, name="delete"),
    path("memory/<str:memory_id>/restore/", notes.restore, name="restore"),
    path("memory/<str:memory_id>/archive/", notes.archive, name="archive"),
    path("memory/<str:memory_id>/history/", notes.history, name="history"),
    path("memory/<str:memory_id>/undo/", notes.undo, name="undo"),
]
