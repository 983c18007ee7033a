from django.urls import path

from apps.chat import api, api_attachments, api_chat
from apps.chat.audit_log.views import LogView
from apps.chat.folders import api as folder_api

urlpatterns = [
    path("chat/", api_chat.ChatView.as_view(), name="chat"),
    path("conversations/", api.ConversationsView.as_view(), name="conversations"),
    path("conversations/<str:conversation_id>/", api.ConversationView.as_view(), name="conversation"),
    path(
        "conversations/<str:conversation_id>/messages/",
        api.MessagesView.as_view(),
        name="conversation-messages",
    ),
    path("conversations/<str:conversation_id>/log/", LogView.as_view(), name="conversation-log"),
    path(
        "conversations/<str:conversation_id>/answer/",
        api_chat.AnswerView.as_view(),
        name="conversation-answer",
    ),
    path(
        "conversations/<str:conversation_id>/approve/",
        api_chat.ApproveView.as_view(),
        name="conversation-approve",
    ),
    path(
        "conversations/<str:conversation_id>/retry/",
        api_chat.RetryView.as_view(),
        name="conversation-retry",
    ),
    path(
        "conversations/<str:conversation_id>/branch/",
        api_chat.BranchView.as_view(),
        name="conversation-branch",
    ),
    path(
        "conversations/<str:conversation_id>/stop/",
        api_chat.StopView.as_view(),
        name="conversation-stop",
    ),
    path("attachments/", api_attachments.AttachmentsView.as_view(), name="attachments"),
    path(
        "attachments/<str:attachment_id>/",
        api_attachments.AttachmentView.as_view(),
        name="attachment",
    ),
    path(
        "attachments/<str:attachment_id>/content/",
        api_attachments.AttachmentContentView.as_view(),
        name="attachment-content",
    ),
    path(
        "attachments/<str:attachment_id>/text/",
        api_attachments.AttachmentTextView.as_view(),
        name="attachment-text",
    ),
    path(
        "attachments/<str:attachment_id>/keep/",
        api_attachments.AttachmentKeepView.as_view(),
        name="attachment-keep",
    ),
    path("folders/", folder_api.FoldersView.as_view(), name="folders"),
    path("folders/<str:folder_id>/", folder_api.FolderView.as_view(), name="folder"),
    path("ingest/", api.IngestView.as_view(), name="ingest"),
]
