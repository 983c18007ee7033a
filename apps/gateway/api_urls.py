"""REST of the gateway."""

from django.urls import path

from apps.gateway.hooks.api import HookView

urlpatterns = [
    path("hooks/<str:client>/", HookView.as_view(), name="hooks"),
]
