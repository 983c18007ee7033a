from django.urls import path

from . import api

urlpatterns = [
    path("builds/", api.BuildsView.as_view()),
    path("builds/<str:build_id>/", api.BuildView.as_view()),
    path("builds/<str:build_id>/events/", api.BuildEventsView.as_view()),
    path("builds/<str:build_id>/answer/", api.BuildAnswerView.as_view()),
    path("builds/<str:build_id>/cancel/", api.BuildCancelView.as_view()),
    path("builds/<str:build_id>/retry/", api.BuildRetryView.as_view()),
]
