from django.urls import path

from . import api, api_changes, api_files, api_links, api_review, api_search
from .purge import api as purge

urlpatterns = [
    path("memories/", api.MemoriesView.as_view(), name="memories"),
    path("memories/bulk/", api.BulkView.as_view(), name="memories-bulk"),
    path("memories/merge/", api_changes.MergeView.as_view(), name="memories-merge"),
    path("memories/review/", api_review.ReviewView.as_view(), name="memories-review"),
    path("memories/contradictions/", api_review.ContradictionsView.as_view(), name="contradictions"),
    path(
        "memories/contradictions/<str:edge_id>/",
        api_review.ContradictionView.as_view(),
        name="contradiction",
    ),
    path("memories/<str:memory_id>/", api.MemoryView.as_view(), name="memory"),
    path("memories/<str:memory_id>/history/", api.HistoryView.as_view(), name="memory-history"),
    path("memories/<str:memory_id>/restore/", api.RestoreView.as_view(), name="memory-restore"),
    path("memories/<str:memory_id>/undo/", api_changes.UndoView.as_view(), name="memory-undo"),
    path("memories/<str:memory_id>/supersede/", api_changes.SupersedeView.as_view(), name="memory-supersede"),
    path("memories/<str:memory_id>/accept/", api_review.AcceptView.as_view(), name="memory-accept"),
    path("memories/<str:memory_id>/reject/", api_review.RejectView.as_view(), name="memory-reject"),
    path("memories/<str:memory_id>/merge/", api_review.ReviewMergeView.as_view(), name="memory-merge"),
    path("memories/<str:memory_id>/related/", api_links.RelatedView.as_view(), name="memory-related"),
    path("memories/<str:memory_id>/links/", api_links.LinksView.as_view(), name="memory-links"),
    path("memories/<str:memory_id>/links/<str:edge_id>/", api_links.LinkView.as_view(), name="memory-link"),
    path("memories/<str:memory_id>/purge/", purge.PurgeView.as_view(), name="memory-purge"),
    path("memory-files/<str:file_id>/purge/", purge.FilePurgeView.as_view(), name="memory-file-purge"),
    path("memory-purges/", purge.ReceiptsView.as_view(), name="memory-purges"),
    path("memory-purges/<str:receipt_id>/", purge.ReceiptView.as_view(), name="memory-purge-receipt"),
    path("memory-files/", api_files.FilesView.as_view(), name="memory-files"),
    path("memory-files/<str:file_id>/history/", api_files.FileHistoryView.as_view(), name="file-history"),
    path("memory-files/<str:file_id>/undo/", api_files.FileUndoView.as_view(), name="file-undo"),
    path("memory-files/<str:file_id>/restore/", api_files.FileRestoreView.as_view(), name="file-restore"),
    path("search/", api_search.SearchView.as_view(), name="search"),
    path("context/", api_search.ContextView.as_view(), name="context"),
    path("stats/", api_search.StatsView.as_view(), name="stats"),
]
