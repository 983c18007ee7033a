from django.urls import path

from apps.agent.api import UsageView

urlpatterns = [path("usage/", UsageView.as_view(), name="usage")]
