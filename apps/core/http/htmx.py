"""Requests of HTMX, which take a part of a page."""

from django.http import HttpRequest


def is_fragment(request: HttpRequest) -> bool:
    """Whether HTMX asked."""
    return bool(request.headers.get("HX-Request"))


def fills(request: HttpRequest, element_id: str) -> bool:
    """Whether HTMX asked, and puts the answer into this element; it names it by its tag and id ("div#notes")."""
    return request.headers.get("HX-Target", "").endswith(f"#{element_id}") and is_fragment(request)
