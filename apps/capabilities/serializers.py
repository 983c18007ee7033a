"""What the REST interface takes and gives, described to OpenAPI; `inputs.py` reads it, `output.py` builds it."""

from typing import Any

from rest_framework import serializers

from apps.core.rest_views import ClosedInput, TextField

from .models import MAX_DESCRIPTION_CHARS, Execution, Origin, Status, Trigger


class CapabilitiesQuery(serializers.Serializer[Any]):
    q = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=1_000,
        help_text="Words that must occur in name, description or tags.",
    )
    status = serializers.ChoiceField(Status.choices, required=False)
    tag = serializers.CharField(default="", allow_blank=True)


class FilesInput(ClosedInput):
    """The texts of a capability's files by name."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        needed = TextField(help_text="Python with `def run(args: dict) -> str`.")
        packages = serializers.CharField(required=False, help_text="Packages to install, one a line.")
        guide = serializers.CharField(required=False, help_text="Generated where it is left out.")
        return {"main.py": needed, "requirements.txt": packages, "RUN.md": guide}


class Permissions(ClosedInput):
    """What a version may reach; the user has to approve it."""

    hosts = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Names, with a port where it is not 80 or 443.",
    )
    secrets = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Names of stored secrets, given as environment.",
    )


class Example(ClosedInput):
    """A call that shows that the capability works; `retest` repeats it."""

    input = serializers.DictField()
    expect = serializers.CharField(required=False, help_text="The result, or a part of it.")


class CapabilityInput(ClosedInput):
    """What a capability is made from."""

    name = serializers.RegexField(r"^[a-z][a-z0-9_]{1,47}$")
    description = TextField(max_length=MAX_DESCRIPTION_CHARS)
    input_schema = serializers.DictField(help_text="JSON schema, draft 2020-12, of type object.")
    output_schema = serializers.DictField(required=False)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    files = FilesInput()
    permissions = Permissions(required=False)
    examples = Example(many=True, required=False)


class CapabilityOutput(serializers.Serializer[Any]):
    """A capability."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    status_reason = serializers.CharField()
    version = serializers.IntegerField(allow_null=True, help_text="Null while it is being built.")
    needs_approval = serializers.BooleanField()
    approved = serializers.BooleanField(help_text="Active and not approved: it waits for `approve/`.")
    input_schema = serializers.DictField()
    output_schema = serializers.DictField()
    tags = serializers.ListField(child=serializers.CharField())
    permissions = Permissions()
    path = serializers.CharField()
    runs = serializers.IntegerField()
    success_rate = serializers.FloatField(allow_null=True)
    last_run_at = serializers.DateTimeField(allow_null=True)
    retire_reason = serializers.CharField(help_text="Why it may be time to let it go, else empty.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class CapabilityVersionOutput(serializers.Serializer[Any]):
    """A state of a capability."""

    version = serializers.IntegerField()
    current = serializers.BooleanField()
    description = serializers.CharField()
    permissions = Permissions()
    needs_approval = serializers.BooleanField()
    approved = serializers.BooleanField()
    approved_at = serializers.DateTimeField(allow_null=True)
    checksum = serializers.CharField()
    origin = serializers.ChoiceField(Origin.choices)
    tested_at = serializers.DateTimeField(allow_null=True)
    test_failures = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class CapabilityDetailOutput(CapabilityOutput):
    """A capability with its files, examples and versions."""

    files = serializers.DictField(child=serializers.CharField())
    tampered = serializers.BooleanField(help_text="A file was changed on disk: it is not run.")
    examples = Example(many=True)
    waiting_version = serializers.IntegerField(
        allow_null=True,
        help_text="A newer one that is in use once it is approved and its examples have passed.",
    )
    versions = CapabilityVersionOutput(many=True)


class RunInput(ClosedInput):
    """What a capability is run with."""

    input = serializers.DictField(required=False, help_text="Fits the capability's `input_schema`.")


class RunErrorOutput(serializers.Serializer[Any]):
    """Why a run gave no result."""

    code = serializers.CharField()
    message = serializers.CharField()


class RunOutput(serializers.Serializer[Any]):
    """What came of a run that began."""

    ok = serializers.BooleanField()
    result = serializers.CharField(allow_null=True)
    error = RunErrorOutput(allow_null=True)
    stdout = serializers.CharField()
    duration_ms = serializers.IntegerField()
    execution_id = serializers.UUIDField()


class ExecutionOutput(serializers.Serializer[Any]):
    """A past run."""

    id = serializers.UUIDField()
    version = serializers.IntegerField()
    state = serializers.ChoiceField(Execution.State.choices)
    trigger = serializers.ChoiceField(Trigger.choices)
    input = serializers.DictField()
    ok = serializers.BooleanField()
    result = serializers.CharField(allow_null=True)
    error = RunErrorOutput(allow_null=True)
    stdout = serializers.CharField()
    stderr = serializers.CharField()
    duration_ms = serializers.IntegerField()
    backend = serializers.CharField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class VersionInput(ClosedInput):
    """Which version is meant."""

    version = serializers.IntegerField(min_value=1, required=False)
