"""Authentication of REST calls and websockets: a bearer token, or the browser's session."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from apps.accounts.models import APIToken, Scope, User
from apps.accounts.selectors import token_for_secret
from apps.accounts.services import TOKEN_PREFIX, token_touch
from apps.core.errors import Forbidden, NotAuthenticated

_SCHEME = "bearer "


def authenticate_bearer(header: str) -> APIToken:
    """The valid token of an Authorization header `Bearer izzy_…` (its `.user` is loaded), noted as used.

    Synchronous; a query or two. Raises NotAuthenticated for everything else.
    """
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret.startswith(TOKEN_PREFIX) or len(secret) > 200:
        raise NotAuthenticated
    token = token_for_secret(secret)
    if token is None:
        raise NotAuthenticated("This API token is unknown, expired or revoked.")
    token_touch(token=token)
    return token


def require_scope(token: APIToken | None, scope: str) -> None:
    """Raise Forbidden (`missing_scope`) unless the token has the scope; a session (None) has every one."""
    if token is not None and not token.allows(scope):
        raise Forbidden(f"This API token lacks the scope {scope}.", scope=scope)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer izzy_…`; `request.auth` is the APIToken."""

    def authenticate(self, request: Request) -> tuple[User, APIToken] | None:
        header = request.headers.get("Authorization", "")
        if not header.lower().startswith(_SCHEME):
            return None
        token = authenticate_bearer(header)
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
