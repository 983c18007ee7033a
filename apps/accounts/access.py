"""Access. Pages ask for sign-in unless their view says `login_not_required`, some for the superuser; REST calls and websockets
come with a bearer token, or the browser's session (websockets: with this site's own Origin)."""

import hashlib
import logging
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import split_domain_port, validate_host
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from apps.accounts.models import ORDERED_SCOPES, APIToken, Scope, User
from apps.accounts.selectors import user_time_zone
from apps.core.db.pool import in_db
from apps.core.db.prepared import prepared
from apps.core.db.writing import claim, writer
from apps.core.errors import Forbidden, NotAuthenticated
from apps.core.http.addresses import DEFAULT_PORTS
from apps.core.http.htmx import is_fragment
from apps.core.log_ids import log_ids_add

P = ParamSpec("P")


class SignedInRequest(HttpRequest):
    """A request that passed SignInRequiredMiddleware."""

    user: User


def superuser_only(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponse],
) -> Callable[Concatenate[SignedInRequest, P], HttpResponse]:
    @wraps(view)
    def guarded(request: SignedInRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_superuser:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return cast("Callable[Concatenate[SignedInRequest, P], HttpResponse]", guarded)


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """A page redirects to sign-in, an HTMX fragment has the page go there, /api/ answers 401 as JSON.

    No cache keeps what is behind the sign-in: whoever goes back after a sign-out sees nothing of it. Pages show times in the
    time zone of the signed-in user; the REST interface stays with UTC. What the request writes are this user's rows.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> Any:
        if isinstance(request.user, User):
            writer.set(request.user.pk)
            log_ids_add(user=request.user.pk)
            if not request.path.startswith("/api/"):
                timezone.activate(user_time_zone(request.user.pk))
        return super().process_view(request, view_func, view_args, view_kwargs)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-store")
        timezone.deactivate()
        writer.set(None)
        return response

    def handle_no_permission(  # type: ignore[override]  # Django's only redirects
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponseBase:
        if request.path.startswith("/api/"):
            error = NotAuthenticated()
            return JsonResponse(error.to_json(), status=error.status)
        if is_fragment(request):
            return HttpResponse(status=401, headers={"HX-Redirect": reverse("accounts:sign_in")})
        return super().handle_no_permission(request, view_func)


logger = logging.getLogger(__name__)

TOKEN_PREFIX = "izzy_"  # noqa: S105  what every token begins with, not a secret
LAST_USED_STEP = timedelta(minutes=1)


def token_digest(secret: str) -> str:
    """The stored hash of a token: it is so random that a plain hash cannot be reversed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def authenticate_bearer(header: str) -> APIToken:
    """The valid token of an Authorization header `Bearer izzy_…` (its `.user` is loaded, with preferences), noted as
    used to the minute, so that reading does not write each time.

    Synchronous; a query or two. Raises NotAuthenticated for everything else.
    """
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret.startswith(TOKEN_PREFIX) or len(secret) > 200:
        raise NotAuthenticated
    now = timezone.now()
    token = _token.first(token_digest(secret))
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        raise NotAuthenticated("This API token is unknown, expired or revoked.")
    log_ids_add(user=token.user_id)
    if token.last_used_at is None or now - token.last_used_at > LAST_USED_STEP:
        try:
            with claim():  # one column, which nobody decides by: whoever reads waits for no writer
                APIToken.objects.unscoped().filter(pk=token.pk).update(last_used_at=now)
        except OperationalError as error:  # a full disk, for example: whoever reads can do without
            logger.warning("the use of a token was not noted: %s", error)
    return token


@prepared
def _token(digest: str) -> QuerySet[APIToken]:
    """The token that was not revoked, of somebody who may sign in."""
    rows = APIToken.objects.unscoped().filter(digest=digest, revoked_at=None, user__is_active=True)
    return rows.select_related("user__preferences").order_by()


def has_scope(token: APIToken, scope: str) -> bool:
    """Whether the token has the scope, or one that includes it."""
    if scope not in ORDERED_SCOPES:
        return scope in token.scopes
    return not set(ORDERED_SCOPES[ORDERED_SCOPES.index(Scope(scope)) :]).isdisjoint(token.scopes)


def require_scope(token: APIToken | None, scope: str) -> None:
    """Raise Forbidden (`missing_scope`) unless the token has the scope; a session (None) has every one."""
    if token is not None and not has_scope(token, scope):
        raise Forbidden(f"This API token lacks the scope {scope}.", scope=scope)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer izzy_…`; `request.auth` is the APIToken."""

    def authenticate(self, request: Request) -> tuple[User, APIToken] | None:
        header = request.headers.get("Authorization", "")
        if not header.lower().startswith("bearer "):
            return None
        token = authenticate_bearer(header)
        writer.set(token.user_id)  # until the request's answer leaves SignInRequiredMiddleware
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="izzy"'


class BrowserSessionAuthentication(SessionAuthentication):
    """The signed-in browser, with CSRF token; `request.auth` is None."""


class ScopePermission(BasePermission):
    """Signed in, and a token has the scope the request needs: `read` for GET, else `write`.

    A view that only reads on POST says `scopes = {"POST": "read"}`.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.user, AnonymousUser) or not request.user:
            raise NotAuthenticated
        default = Scope.READ if request.method in SAFE_METHODS else Scope.WRITE
        scopes: dict[str, Any] = getattr(view, "scopes", {})
        token = request.auth if isinstance(request.auth, APIToken) else None
        require_scope(token, str(scopes.get(request.method or "", default)))
        return True


ASGIApp = Any


class OriginOrToken:
    """With `Authorization: Bearer …` the token's user is put into the scope (`user`, and the APIToken as `token`) and
    the Origin does not count; without, the Origin must be this site's and `with_session` reads the cookie.
    Whoever has neither is refused with 403 before the handshake."""

    def __init__(self, with_session: ASGIApp, with_token: ASGIApp) -> None:
        self.with_session = with_session
        self.with_token = with_token

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", [])}
        if header := headers.get(b"authorization"):
            try:
                token = await in_db(authenticate_bearer, header)
            except NotAuthenticated:
                return await WebsocketDenier()(scope, receive, send)
            scope = {**scope, "user": token.user, "token": token}
            return await self.with_token(scope, receive, send)
        if not is_own_origin(headers.get(b"origin", ""), headers.get(b"host", "")):
            return await WebsocketDenier()(scope, receive, send)
        return await self.with_session({**scope, "token": None}, receive, send)


def is_own_origin(origin: str, host: str) -> bool:
    """Whether a browser's Origin is this site: the host that was asked, or IZZY_PUBLIC_URL."""
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
        if settings.TLS and parts.scheme != "https":
            return False  # a page that came in the clear may be anybody's
        asked = urlsplit(f"//{host}")
        domain, _ = split_domain_port(host)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
        same_port = port == (asked.port or DEFAULT_PORTS.get(parts.scheme))
    except ValueError:
        return False
    return (
        bool(parts.hostname)
        and parts.hostname == asked.hostname
        and same_port
        and bool(domain)
        and validate_host(domain, settings.ALLOWED_HOSTS)
    )
