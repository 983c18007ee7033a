"""Izzy with one more address, a view that does nothing behind the same stack: the floor of every REST answer."""

from izzysite.asgi import application

__all__ = ["application", "urlpatterns"]

from django.conf import settings
from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

settings.ROOT_URLCONF = __name__


class HelloView(APIView):
    scopes = {"POST": "read"}

    def post(self, request: Request) -> Response:
        """Read the body and answer with a few bytes."""
        body: dict[str, str] = request.data  # type: ignore[assignment]  # StrictJSONParser lets objects through alone
        return Response({"results": [], "query": body["query"]})


urlpatterns = [path("api/v1/hello/", HelloView.as_view()), path("", include("izzysite.urls"))]
