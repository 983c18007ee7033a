"""Which addresses of pages are fetched at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apps.agent.tools.base import ToolFailure
from apps.agent.web.limits import MAX_URL_CHARS
from apps.core.http.addresses import AddressRefused, canonical_host

if TYPE_CHECKING:
    import httpx  # takes a while, and links are looked at long before a page is opened

DEFAULT_PORTS = {"http": 80, "https": 443}
FIRST_USER_PORT = 1024


def checked_url(text: str) -> httpx.URL:
    """The URL in its one spelling: http or https, no user part, no fragment, canonical host.

    Raises `ToolFailure` for what is no such URL, `AddressRefused` for a host that can never be public; whether it
    *is* public is found out when it is connected to.
    """
    import httpx

    text = text.strip()
    if re.search(r"[\x00-\x20\\\x7f]", text) or len(text) > MAX_URL_CHARS:
        raise ToolFailure("That is not the address of a page. Give one such as https://example.org/page.")
    try:
        url = httpx.URL(_with_scheme(text))
        host, port = url.host, url.port
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolFailure(f"{text[:200]} is not the address of a page.") from error
    if url.scheme not in DEFAULT_PORTS or not host:
        raise ToolFailure("Only http:// and https:// pages can be opened.")
    if url.userinfo:
        raise ToolFailure("An address with a user name or password in it is not opened. Leave that part out.")
    name = canonical_host(host)
    if port is not None and port < FIRST_USER_PORT and port not in DEFAULT_PORTS.values():
        raise AddressRefused(f"Port {port} is not one for web pages.", host=name)
    return url.copy_with(host=name, fragment=None)


def next_url(url: httpx.URL, location: str) -> httpx.URL:
    """Where a redirect leads, checked like the first address."""
    import httpx

    if not location:
        raise ToolFailure("The page redirects to nowhere. Try another one.")
    try:
        joined = url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolFailure("The page redirects to an address that is none. Try another one.") from error
    return checked_url(str(joined))


def _with_scheme(text: str) -> str:
    """`example.org/page` is what people write; `javascript:…` and `file:…` have a scheme of their own."""
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)", text) else f"https://{text}"
