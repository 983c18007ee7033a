"""Records of capabilities with all their versions and files, as an export has them, and how they are taken in: disabled and
unapproved, whoever made them. What was allowed, what ran and what is secret is no part of them."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from pydantic import Field

from apps.capabilities.catalog.drafts import (
    MAIN,
    REQUIREMENTS,
    RUN_MD,
    Draft,
    clean_description,
    clean_draft,
    clean_name,
)
from apps.capabilities.catalog.files import MAX_READ_BYTES, files_read
from apps.capabilities.catalog.schemas import clean_schema
from apps.capabilities.catalog.versions import (
    UNTRUSTED,
    capability_save,
    make_current,
    version_make,
)
from apps.capabilities.models import (
    MAX_NAME_CHARS,
    Capability,
    CapabilityVersion,
    Origin,
    Status,
)
from apps.core.errors import IzzyError
from apps.core.http.shapes import Checked, Lax, text
from apps.core.transfer import (
    GONE,
    KNOWN,
    Document,
    Entry,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    ids_here,
    paged,
    row_of,
    shaped,
    write_nothing,
)

UNMADE = "It was brought in without a version."
FULL = "There are as many capabilities as may be."
# Both are counted on from here, in columns that end at 2**31 - 1.
_Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
_Number = Annotated[int, Field(ge=1, le=1_000_000)]


def _whole(value: object, *, field: str) -> str:
    """A file's text as it is."""
    text(MAX_READ_BYTES, allow_empty=True).check(value, field=field)
    return str(value)


class CapabilityRecord(RecordInput):
    """A capability; its versions stand behind it."""

    id: RecordId
    name: Annotated[str, Checked(lambda value, field: clean_name(value), {"type": "string"})]
    description: Annotated[
        str, Checked(lambda value, field: clean_description(value), {"type": "string"})
    ]
    input_schema: dict[str, Any] = Field(default_factory=dict)
    runs: _Count = 0
    successes: _Count = 0
    failures_in_row: _Count = 0
    last_run_at: RecordTime | None = None
    created_at: RecordTime
    updated_at: RecordTime


class PermissionsRecord(RecordInput):
    """The hosts and secrets that a version asks for."""

    hosts: list[str] = Field(default_factory=list)
    secrets: list[str] = Field(default_factory=list)


class VersionRecord(RecordInput):
    """A version with its files."""

    id: RecordId
    capability: RecordId
    number: _Number
    current: bool = False
    description: str
    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)
    permissions: PermissionsRecord = PermissionsRecord()
    examples: list[dict[str, Any]] = Field(default_factory=list)
    files: dict[str, Annotated[str, Checked(_whole, {"type": "string"})]]
    checksum: Annotated[str, text(64, allow_empty=True)] = ""
    origin: Annotated[Origin, Lax] = Origin.IMPORT
    quotes_others: bool = True
    tested_at: RecordTime | None = None
    created_at: RecordTime

    def draft(self) -> Draft:
        """Its content, checked. InvalidInput, TooLarge."""
        return clean_draft(
            Draft(
                description=self.description,
                input_schema=self.input_schema,
                main=self.files.get(MAIN, ""),
                requirements=self.files.get(REQUIREMENTS, ""),
                run_md=self.files.get(RUN_MD, ""),
                output_schema=self.output_schema,
                tags=self.tags,
                hosts=self.permissions.hosts,
                secrets=self.permissions.secrets,
                examples=self.examples,
            )
        )


def capability_rows(user_id: UUID) -> Iterator[Row]:
    """Each capability with its versions behind it, oldest first."""
    for capability in paged(Capability.objects.for_user(user_id), 50):
        yield row_of("capability", CapabilityRecord, capability)
        versions = CapabilityVersion.objects.for_user(user_id).filter(capability=capability)
        for version in list(versions.order_by("number")):
            yield row_of(
                "capability_version",
                VersionRecord,
                version,
                current=version.pk == capability.current_id,
                permissions={"hosts": version.hosts, "secrets": version.secrets},
                files=files_read(version.path),
            )


def capability_documents(user_id: UUID) -> Iterator[Document]:
    """The files of each capability's current version, in a folder of its name."""
    for capability in paged(Capability.objects.for_user(user_id).exclude(path=""), 50):
        for name, content in files_read(capability.path).items():
            path = f"capabilities/{capability.name}/{name}"
            yield Document(path, [content], capability.updated_at)


def capabilities_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans capabilities with their versions. One whose name is taken by another gets a number behind it."""
    heads = shaped(taking, [e for e in entries if e.kind == "capability"], CapabilityRecord)
    given = shaped(taking, [e for e in entries if e.kind == "capability_version"], VersionRecord)
    keys = {record.id for _, record in heads} | {record.capability for _, record in given}
    ids = ids_here(taking, "capability", keys)
    versions = ids_here(taking, "capability_version", {record.id for _, record in given})
    rows = Capability.objects.for_user(taking.user_id)
    names = set(rows.values_list("name", flat=True))
    made: dict[UUID, Capability] = {}
    for entry, record in heads:
        key = ids[record.id]
        if ids.known(record.id) or key in made:
            taking.report.skip(entry, KNOWN)
        elif len(names) >= settings.IZZY_CAPABILITY_LIMIT:
            taking.report.skip(entry, FULL)
        else:
            try:
                made[key] = _capability(taking, record, key, _free(record.name, names))
            except IzzyError as error:
                taking.report.refuse(entry, error.message)
                continue
            names.add(made[key].name)
            taking.report.take("capability")
    new: list[tuple[VersionRecord, Draft]] = []
    numbers: set[tuple[UUID, int]] = set()
    for entry, version in given:
        key = ids[version.capability]
        if key not in made:
            taking.report.skip(entry, KNOWN if ids.known(version.capability) else GONE)
        elif versions.known(version.id) or (key, version.number) in numbers:
            taking.report.skip(entry, KNOWN)
        else:
            try:
                new.append((version, version.draft()))
            except IzzyError as error:
                taking.report.refuse(entry, error.message)
                continue
            numbers.add((key, version.number))
            taking.report.take("capability_version")
    taking.fresh |= made.keys()
    if not made:
        return write_nothing

    def write() -> None:
        Capability.objects.bulk_create(list(made.values()))
        for version, draft in new:
            _version_write(taking, made[ids[version.capability]], version, versions[version.id], draft)
        for capability in made.values():
            updated = capability.updated_at
            capability_save(capability, Status.DISABLED, UNTRUSTED if capability.path else UNMADE)
            Capability.objects.for_user(taking.user_id).filter(pk=capability.pk).update(
                updated_at=updated
            )

    return write


def _capability(taking: Taking, record: CapabilityRecord, key: UUID, name: str) -> Capability:
    values = record.columns(Capability) | {"name": name, "status": Status.DISABLED}
    values["input_schema"] = clean_schema(record.input_schema) if record.input_schema else {}
    if not taking.own:
        values |= {"runs": 0, "successes": 0, "failures_in_row": 0, "last_run_at": None}
    return Capability(id=key, user_id=taking.user_id, **values)


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: MAX_NAME_CHARS - 5]}_{number}"
    return free


def _version_write(
    taking: Taking, capability: Capability, record: VersionRecord, key: UUID, draft: Draft
) -> None:
    """Writes a version with its files; the first and the current one are what the capability says."""
    version = version_make(
        capability,
        draft,
        id=key,
        number=record.number,
        created_at=record.created_at,
        origin=record.origin if taking.own else Origin.IMPORT,
        untrusted=True,
        quotes_others=record.quotes_others if taking.own else not taking.accept,
        tested_at=record.tested_at if taking.own else None,
    )
    if record.current or not capability.path:
        failures = capability.failures_in_row
        make_current(capability, version)
        capability.failures_in_row = failures
