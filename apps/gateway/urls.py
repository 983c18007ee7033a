"""Pages and other addresses of the gateway."""

from django.urls import URLPattern

app_name = "gateway"

urlpatterns: list[URLPattern] = []
