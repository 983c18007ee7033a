from django.urls import path

from apps.chat import views

app_name = "chat"

urlpatterns = [
    path("", views.home, name="home"),
    path("c/<str:conversation_id>/", views.conversation, name="conversation"),
    path("c/<str:conversation_id>/rename/", views.conversation_rename, name="conversation-rename"),
    path("c/<str:conversation_id>/delete/", views.conversation_delete, name="conversation-delete"),
    path("conversations/", views.conversation_list, name="conversation-list"),
]
