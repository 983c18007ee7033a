"""Lists of the REST interface: `{count, next, previous, results}`, with `?page=` and `?page_size=` up to 200."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from apps.core.errors import InvalidInput


class Pages(PageNumberPagination):
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int | None:
        """Raises InvalidInput for what is no number of rows; more than 200 are 200."""
        given = request.query_params.get("page_size")
        if given is not None and not (given.isascii() and given.isdigit() and given.strip("0")):
            raise InvalidInput("page_size must be a whole number from 1.", field="page_size")
        return super().get_page_size(request)

    def get_page_number(self, request: Request, paginator: Paginator[Any]) -> str:
        """Raises InvalidInput for an empty one; what there is no page of is not found."""
        if request.query_params.get("page") == "":
            raise InvalidInput("page must be a whole number from 1.", field="page")
        return str(super().get_page_number(request, paginator))
