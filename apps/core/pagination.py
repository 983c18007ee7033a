"""Lists of the REST interface: `{count, next, previous, results}`, with `?page=` and `?page_size=` up to 200."""

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    page_size_query_param = "page_size"
    max_page_size = 200
