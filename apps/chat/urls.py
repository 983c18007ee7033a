from django.urls import path

from apps.chat import views
from apps.chat.audit_log import views as log_views
from apps.chat.bulk import views as bulk
from apps.chat.folders import views as folder_views
from apps.chat.overview import views as about

app_name = "chat"

urlpatterns = [
    path("", views.home, name="home"),
    path("c/<str:conversation_id>/", views.conversation, name="conversation"),
    path("c/<str:conversation_id>/rename/", views.conversation_rename, name="conversation-rename"),
    path("c/<str:conversation_id>/restore/", views.conversation_restore, name="conversation-restore"),
    path("c/<str:conversation_id>/delete/", views.conversation_delete, name="conversation-delete"),
    path("c/<str:conversation_id>/about/", about.about, name="conversation-about"),
    path("c/<str:conversation_id>/log/", log_views.log_page, name="conversation-log"),
    path("c/<str:conversation_id>/log.json", log_views.log_download, name="conversation-log-download"),
    path("c/<str:conversation_id>/link/<str:signed>/", views.link, name="link"),
    path("conversations/", views.conversation_list, name="conversation-list"),
    path("suggestions/", views.suggested, name="suggestions"),
    path("palette/", views.palette_lines, name="palette"),
    path("conversations/bulk/", bulk.conversations_bulk, name="conversations-bulk"),
    path("conversations/delete/", bulk.conversations_ask, name="conversations-delete"),
    path("conversations/undo/", bulk.conversations_undo, name="conversations-undo"),
    path("c/<str:conversation_id>/move/", folder_views.conversation_move, name="conversation-move"),
    path("folders/new/", folder_views.folder_new, name="folder-new"),
    path("folders/<str:folder_id>/rename/", folder_views.folder_rename, name="folder-rename"),
    path("folders/<str:folder_id>/delete/", folder_views.folder_delete, name="folder-delete"),
    path("folders/<str:folder_id>/open/", folder_views.folder_open, name="folder-open"),
    path("news/", views.news, name="news"),
]
