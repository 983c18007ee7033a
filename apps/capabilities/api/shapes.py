"""The shapes of the REST interface of capabilities."""

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails

from apps.capabilities.catalog.drafts import (
    clean_description,
    clean_listed,
    clean_name,
    clean_permissions,
    clean_tags,
)
from apps.capabilities.catalog.files import FILES, files_read, is_tampered
from apps.capabilities.catalog.schemas import clean_output_schema, clean_schema
from apps.capabilities.catalog.selectors import retire_reason, success_rate, version_waiting, versions_of
from apps.capabilities.models import (
    MAX_DESCRIPTION_CHARS,
    Capability,
    Execution,
    Origin,
    Status,
    Trigger,
)
from apps.core.errors import InvalidInput
from apps.core.http.shapes import ABSENT, Beside, Checked, ClosedInput, Moment, Query, Refused, Shape
from apps.core.text import NOT_BLANK

OBJECT = {"type": "object", "additionalProperties": {}}
SCHEMA = {**OBJECT, "required": ["type"], "properties": {"type": {"type": "string", "enum": ["object"]}}}
NAME = {"type": "string", "minLength": 1, "pattern": "^[a-z][a-z0-9_]{1,47}$"}
DESCRIPTION = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_DESCRIPTION_CHARS,
    "pattern": NOT_BLANK,
}
TAGS = {"type": "array", "items": {"type": "string", "minLength": 1}}


class CapabilitiesQuery(Query):
    q: str = Field(
        ABSENT, max_length=1_000, description="Words that must occur in name, description or tags."
    )
    status: Status = ABSENT
    tag: str = ABSENT


class FilesInput(ClosedInput):
    """The texts of a capability's files by name."""

    openapi = {"required": ["main.py"]}  # of a new one
    main: str | None = Field(
        None,
        alias="main.py",
        description="Python with `def run(args: dict) -> str`.",
        json_schema_extra={"minLength": 1, "pattern": NOT_BLANK, "nullable": False},
    )
    requirements: str | None = Field(
        None, alias="requirements.txt", description="Packages to install, one a line."
    )
    run_md: str | None = Field(None, alias="RUN.md", description="Generated where it is left out.")

    @classmethod
    def checked(cls, value: object, *, field: str) -> Self:
        return cls.read(value)

    @classmethod
    def _refusal(cls, problem: ErrorDetails) -> InvalidInput:
        code = "unknown_file" if problem["type"] == "extra_forbidden" else "wrong_type"
        return InvalidInput(f"files: {problem['msg']}", code=code, field="files")


class Permissions(Shape):
    """Permissions of a version; the user must approve them."""

    model_config = ConfigDict(extra="forbid")

    hosts: list[str] = Field([], description="Names, with a port where it is not 80 or 443.")
    secrets: list[str] = Field([], description="Names of stored secrets, given as environment.")


class Example(Shape):
    """A call that shows that the capability works; `retest` repeats it."""

    model_config = ConfigDict(extra="forbid")

    input: dict[str, Any]
    expect: str = Field(
        ABSENT, exclude_if=lambda value: value is None, description="The result, or a part of it."
    )


class CapabilityInput(ClosedInput):
    """The parts of a capability."""

    name: Annotated[str, Checked(lambda value, field: clean_name(value), NAME), Refused("empty_text")]
    description: Annotated[str, Checked(lambda value, field: clean_description(value), DESCRIPTION)]
    input_schema: Annotated[dict[str, Any], Checked(clean_schema, SCHEMA), Refused("invalid_schema")] = (
        Field(description="JSON schema, draft 2020-12, of type object.")
    )
    output_schema: Annotated[
        dict[str, Any], Checked(lambda value, field: clean_output_schema(value), OBJECT)
    ] = ABSENT
    tags: Annotated[list[str], Checked(lambda value, field: clean_tags(value), TAGS)] = ABSENT
    files: Annotated[FilesInput, Checked(FilesInput.checked, FilesInput), Refused("empty_text")]
    permissions: Annotated[
        tuple[list[Any], list[Any]], Checked(lambda value, field: clean_permissions(value), Permissions)
    ] = ABSENT
    examples: Annotated[list[Any], Checked(clean_listed, {"type": "array", "items": Example})] = ABSENT

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: part
            for name, part in value.items()
            if part is not None or name not in cls.model_fields
        }

    @property
    def draft_parts(self) -> dict[str, Any]:
        """The parts of a `Draft` that were given."""
        parts = self.given
        parts.pop("name", None)
        if files := parts.pop("files", None):
            parts |= {name: value for name, value in files.given.items() if value is not None}
        if "permissions" in parts:
            parts["hosts"], parts["secrets"] = parts.pop("permissions")
        return parts


CapabilityPatch = CapabilityInput.partial()


class CapabilityOutput(Shape):
    """A capability."""

    id: UUID
    name: str
    description: str
    status: Status
    status_reason: str
    version: int | None = Field(description="Null while it is being built.")
    needs_approval: bool
    approved: bool = Field(description="Active and not approved: it waits for `approve/`.")
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    tags: list[str]
    permissions: Permissions
    path: str
    runs: int
    success_rate: float | None
    last_run_at: Moment | None
    retire_reason: str = Field(description="Why it may be time to let it go, else empty.")
    created_at: Moment
    updated_at: Moment


class CapabilityVersionOutput(Shape):
    """A state of a capability."""

    version: int = Field(validation_alias="number")
    current: bool
    description: str
    permissions: Permissions
    needs_approval: bool
    approved: bool = Field(validation_alias="is_approved")
    approved_at: Moment | None
    checksum: str
    origin: Origin
    tested_at: Moment | None
    test_failures: list[str]
    created_at: Moment


class CapabilityDetailOutput(CapabilityOutput):
    """A capability with its files, examples and versions."""

    files: dict[str, str]
    tampered: bool = Field(description="A file was changed on disk: it is not run.")
    examples: list[Example]
    waiting_version: int | None = Field(
        description="A newer one that is in use once it is approved and its examples have passed."
    )
    versions: list[CapabilityVersionOutput]


class RunInput(ClosedInput):
    """The input of a run."""

    input: Annotated[dict[str, Any] | None, Refused("bad_input")] = Field(
        None, description="Fits the capability's `input_schema`."
    )


class RunErrorOutput(Shape):
    """Why a run gave no result."""

    code: str = Field(validation_alias="error_code")
    message: str = Field(validation_alias="error_message")


class RunOutput(Shape):
    """The result of a begun run."""

    ok: bool
    result: str | None
    error: RunErrorOutput | None
    stdout: str
    duration_ms: int
    execution_id: UUID = Field(validation_alias="id")


class ExecutionOutput(Shape):
    """A past run."""

    id: UUID
    version: int
    state: Execution.State
    trigger: Trigger
    input: dict[str, Any]
    ok: bool
    result: str | None
    error: RunErrorOutput | None
    stdout: str
    stderr: str
    duration_ms: int
    backend: str
    created_at: Moment
    finished_at: Moment | None


class VersionInput(ClosedInput):
    """Which version is meant."""

    version: Annotated[int | None, Refused("wrong_type")] = Field(None, ge=1, le=2**31 - 1)


def capability_seen(capability: Capability) -> Beside:
    """A capability as lists hold it."""
    current, rate = capability.current, success_rate(capability)
    return Beside(
        capability,
        version=current.number if current else None,
        needs_approval=bool(current and current.needs_approval),
        approved=bool(current and current.is_approved),
        permissions=current or {},
        success_rate=None if rate is None else round(rate, 3),
        retire_reason=retire_reason(capability),
    )


def capability_opened(capability: Capability) -> Beside:
    """A capability with its files, as they are on disk now, its examples and its versions."""
    current, waiting = capability.current, version_waiting(capability)
    return Beside(
        capability_seen(capability),
        files=files_read(current.path) if current else dict.fromkeys(FILES, ""),
        tampered=bool(current and is_tampered(current, capability.name)),
        examples=current.examples if current else [],
        waiting_version=waiting.number if waiting else None,
        versions=[
            Beside(version, current=version.pk == capability.current_id, permissions=version)
            for version in versions_of(capability)
        ],
    )


def run_seen(execution: Execution) -> Beside:
    """A run with what came of it."""
    ok = execution.state == Execution.State.OK
    return Beside(
        execution, ok=ok, result=execution.result if ok else None, error=None if ok else execution
    )
