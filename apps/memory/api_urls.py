from django.urls import path

from . import api, api_files, api_search

urlpatterns = [
    path("memories/", api.MemoriesView.as_view(), name="memories"),
    path("memories/bulk/", api.BulkView.as_view(), name="memories-bulk"),
    path("memories/<str:memory_id>/", api.MemoryView.as_view(), name="memory"),
    path("memories/<str:memory_id>/history/", api.HistoryView.as_view(), name="memory-history"),
    path("memories/<str:memory_id>/restore/", api.RestoreView.as_view(), name="memory-restore"),
    path("memories/<str:memory_id>/related/", api.RelatedView.as_view(), name="memory-related"),
    path("memories/<str:memory_id>/links/", api.LinksView.as_view(), name="memory-links"),
    path("memories/<str:memory_id>/links/<str:edge_id>/", api.LinkView.as_view(), name="memory-link"),
    path("memory-files/", api_files.FilesView.as_view(), name="memory-files"),
    path("search/", api_search.SearchView.as_view(), name="search"),
    path("context/", api_search.ContextView.as_view(), name="context"),
    path("stats/", api_search.StatsView.as_view(), name="stats"),
]
