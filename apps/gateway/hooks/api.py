"""REST: the hooks of other programs."""

from typing import Any, ClassVar, cast

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer
from rest_framework.request import Request

from apps.accounts.models import APIToken
from apps.core.http.rest import UserView, operation
from apps.core.http.shapes import OpenInput, Shape
from apps.gateway.hooks.dialects import dialect_of
from apps.gateway.hooks.services import hook_run


class HookInput(OpenInput):
    """A hook's stdin, as the client gives it."""

    openapi = {"additionalProperties": True}
    hook_event_name: str = Field(description="Events that Izzy has no use for are answered by `{}`.")


class HookSpecificOutput(Shape):
    hookEventName: str  # noqa: N815  the clients' name
    additionalContext: str  # noqa: N815


class HookOutput(Shape):
    """A hook's stdout, as the client reads it: the first field for Claude Code, Codex and Gemini CLI, the others for Cursor; none
    where Izzy has nothing to say."""

    hookSpecificOutput: HookSpecificOutput | None = None  # noqa: N815
    additional_context: str | None = None
    go_on: bool | None = Field(None, alias="continue")

    @model_serializer(mode="wrap")
    def _given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}


class HookView(UserView):
    """`POST /hooks/{client}/`."""

    scopes: ClassVar = {"POST": "read"}  # what keeps something asks for `write` itself

    @operation("hooks", body=HookInput, answer=HookOutput)
    def post(self, request: Request, client: str) -> dict[str, Any]:
        """Take an event of a program's hook as the program sends it, and answer as it reads it.

        The client is `claude-code`, `codex`, `gemini-cli` or `cursor`. Notes come at a session's start and at a prompt; at a stop
        what was said is kept, which needs the scope `write`.
        """
        dialect = dialect_of(client)
        self.body(HookInput)
        body = cast("dict[str, Any]", request.data)
        token = request.auth if isinstance(request.auth, APIToken) else None
        return hook_run(user_id=self.user_id, token=token, dialect=dialect, body=body)
