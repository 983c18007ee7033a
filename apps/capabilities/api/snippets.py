"""REST: running code of an answer once."""

from textwrap import dedent
from typing import Annotated, Any, Literal

from asgiref.sync import async_to_sync
from pydantic import Field
from rest_framework.request import Request

from apps.capabilities.runs.snippets import MAX_CODE_CHARS, snippet_run
from apps.core.http.rest import UserView, operation
from apps.core.http.shapes import Checked, OpenInput, Shape
from apps.core.text import clean_text


def _code(value: object, *, field: str) -> str:
    """Code as it came, but for what all of its lines are indented by."""
    clean_text(value, field=field, max_chars=MAX_CODE_CHARS, allow_empty=True)
    return dedent(str(value))


class CodeInput(OpenInput):
    code: Annotated[str, Checked(_code, {"type": "string", "maxLength": MAX_CODE_CHARS})]
    language: Literal["python"] = "python"


class CodeErrorOutput(Shape):
    code: str
    message: str


class CodeOutput(Shape):
    ok: bool
    stdout: str = Field(description="What it wrote; the value of its last line as a shell shows it.")
    error: CodeErrorOutput | None
    duration_ms: int


class CodeRunView(UserView):
    """`POST /run/`."""

    throttle_scope = "chat"

    @operation("code_run", body=CodeInput, answer=CodeOutput)
    def post(self, request: Request) -> Any:
        """Run Python once in a fresh sandbox without network and secrets. 200 for every run that began, `ok` says how it ended."""
        return async_to_sync(snippet_run)(user_id=self.user_id, code=self.body(CodeInput).code)
