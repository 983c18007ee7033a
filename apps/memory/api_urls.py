from django.urls import path

from .api import changes, files, links, notes, purges, review, search

urlpatterns = [
    path("memories/", notes.MemoriesView.as_view(), name="memories"),
    path("memories/bulk/", notes.BulkView.as_view(), name="memories-bulk"),
    path("memories/merge/", changes.MergeView.as_view(), name="memories-merge"),
    path("memories/review/", review.ReviewView.as_view(), name="memories-review"),
    path("memories/contradictions/", review.ContradictionsView.as_view(), name="contradictions"),
    path(
        "memories/contradictions/<str:edge_id>/",
        review.ContradictionView.as_view(),
        name="contradiction",
    ),
    path("memories/<str:memory_id>/", notes.MemoryView.as_view(), name="memory"),
    path("memories/<str:memory_id>/history/", notes.HistoryView.as_view(), name="memory-history"),
    path("memories/<str:memory_id>/restore/", notes.RestoreView.as_view(), name="memory-restore"),
    path("memories/<str:memory_id>/undo/", changes.UndoView.as_view(), name="memory-undo"),
    path("memories/<str:memory_id>/supersede/", changes.SupersedeView.as_view(), name="memory-supersede"),
    path("memories/<str:memory_id>/accept/", review.AcceptView.as_view(), name="memory-accept"),
    path("memories/<str:memory_id>/reject/", review.RejectView.as_view(), name="memory-reject"),
    path("memories/<str:memory_id>/merge/", review.ReviewMergeView.as_view(), name="memory-merge"),
    path("memories/<str:memory_id>/related/", links.RelatedView.as_view(), name="memory-related"),
    path("memories/<str:memory_id>/links/", links.LinksView.as_view(), name="memory-links"),
    path("memories/<str:memory_id>/links/<str:edge_id>/", links.LinkView.as_view(), name="memory-link"),
    path("memories/<str:memory_id>/purge/", purges.PurgeView.as_view(), name="memory-purge"),
    path("memory-files/<str:file_id>/purge/", purges.FilePurgeView.as_view(), name="memory-file-purge"),
    path("memory-purges/", purges.ReceiptsView.as_view(), name="memory-purges"),
    path("memory-purges/<str:receipt_id>/", purges.ReceiptView.as_view(), name="memory-purge-receipt"),
    path("memory-files/", files.FilesView.as_view(), name="memory-files"),
    path("memory-files/<str:file_id>/history/", files.FileHistoryView.as_view(), name="file-history"),
    path("memory-files/<str:file_id>/undo/", files.FileUndoView.as_view(), name="file-undo"),
    path("memory-files/<str:file_id>/restore/", files.FileRestoreView.as_view(), name="file-restore"),
    path("search/", search.SearchView.as_view(), name="search"),
    path("context/", search.ContextView.as_view(), name="context"),
    path("stats/", search.StatsView.as_view(), name="stats"),
]
