"""REST of the gateway."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
