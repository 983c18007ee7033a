"""Tags and categories with how many notes have each: a page to look through, and a fragment among the filters of the list."""

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.core.http.htmx import is_fragment
from apps.core.text import fold
from apps.memory.summary.keeping import Words, tags_of

PAGE_SIZE = 90
AMONG_FILTERS = 40
"""The list of memories offers so many of the commonest."""
MAX_QUERY_CHARS = 100


@require_GET
def tags(request: SignedInRequest) -> HttpResponse:
    """The fragment for whoever opens it among the filters; else the page, or for HTMX what was found on it."""
    tags, categories = tags_of(request.user.pk)
    if is_fragment(request) and "q" not in request.GET:
        context = {
            "tags": tags[:AMONG_FILTERS],
            "categories": categories[:AMONG_FILTERS],
            "all": max(len(tags), len(categories)) > AMONG_FILTERS,
        }
        return render(request, "memory/_tags.html", context)
    asked, named = request.GET.get("q", "")[:MAX_QUERY_CHARS], request.GET.get("by") == "name"
    by = [("by", "name")] if named else []
    page = Paginator(_found(tags, asked, named), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav": "memory",
        "q": asked,
        "named": named,
        "page": page,
        "numbers": list(page.paginator.get_elided_page_range(page.number, on_each_side=1, on_ends=1)),
        "categories": _found(categories, asked, named)[:PAGE_SIZE] if page.number == 1 else [],
        "none": not tags and not categories,
        "kept": [("q", asked), *by],
        "asked": urlencode([("q", asked), *by]) + "&",
    }
    template = "memory/tags/_found.html" if is_fragment(request) else "memory/tags/page.html"
    return render(request, template, context)


def _found(words: Words, asked: str, named: bool) -> Words:
    """The words that have what is asked for in them, the commonest first or by name."""
    wanted = fold(asked)
    found = [(word, count) for word, count in words if wanted in fold(word)]
    return sorted(found, key=lambda pair: fold(pair[0])) if named else found
