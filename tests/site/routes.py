"""All addresses of the site, as the URL resolver knows them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True)
class Route:
    """`path` as written in the URL configuration, with `<str:name>` where a value goes."""

    path: str
    parameters: tuple[str, ...]
    view: Callable[..., object] = field(compare=False)

    def url(self, values: dict[str, str]) -> str:
        url = "/" + self.path
        for name in self.parameters:
            start = url.index("<")
            url = url[:start] + values[name] + url[url.index(">") + 1 :]
        return url

    def __str__(self) -> str:
        return "/" + self.path


def all_routes() -> list[Route]:
    """Every address but those of the admin, which only superusers reach and which is tested as a whole."""
    return [route for route in _walk(get_resolver(), "") if not route.path.startswith("admin/")]


def _walk(resolver: URLResolver, prefix: str) -> list[Route]:
    found: list[Route] = []
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            names = tuple(part.partition(">")[0].rpartition(":")[2] for part in path.split("<")[1:])
            found.append(Route(path, names, entry.callback))
        else:
            found.extend(_walk(entry, path))
    return found


def groups(routes: Sequence[Route], size: int = 16) -> list[list[Route]]:
    """The routes in a few lists: what only refuses can share one set of belongings, which take long to make."""
    return [list(routes[start : start + size]) for start in range(0, len(routes), size)]
