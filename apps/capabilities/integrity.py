"""Checks of capabilities: the files of their versions, folders that belong to none, requirements of nobody; and what search
should hold of them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from uuid import UUID

from django.core.files.storage import storages
from django.db import transaction
from django.db.models import F, Q

from apps.capabilities.catalog.files import (
    FILES,
    ROOT,
    CapabilityRefused,
    files_verified,
    folder_remove,
)
from apps.capabilities.catalog.lifecycle import capability_disable
from apps.capabilities.catalog.matching import capability_document
from apps.capabilities.models import Capability, CapabilityVersion, Status
from apps.capabilities.sandbox.layers.store import layer_owners, layers_name, layers_remove
from apps.core.db.writing import writing_for
from apps.core.integrity import (
    Check,
    Finding,
    disposable,
    findings,
    integrity_checks,
    row_name,
    rows_of,
    users_each,
)
from apps.search.documents import Document, Source
from apps.search.integrity import Indexed, indexed

AT_ONCE = 200


def _documents(user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, list[Document]]:
    rows = Capability.objects.for_user(user_id).filter(pk__in=ids)
    return {row.pk: [capability_document(row)] if row.status == Status.ACTIVE else [] for row in rows}


def _versions(user_id: UUID | None) -> Iterator[Finding]:
    """Whether each capability is what its current version is."""
    rows = rows_of(Capability, user_id)
    strange = Q(current__isnull=False) & ~Q(current__capability=F("pk"))
    differs = Q(current__isnull=False) & ~Q(path=F("current__path"))
    yield from findings(
        rows.filter(strange),
        "Its current version is another capability's.",
        advice="Choose one of its versions on its page.",
    )
    yield from findings(
        rows.filter(differs).exclude(strange),
        "Its folder is not that of its current version.",
        repair="Takes over what its current version says.",
        kind="path",
    )
    yield from findings(
        rows.filter(current=None, status=Status.ACTIVE),
        "It is active, and has no version that could run.",
        repair="Disables it.",
        kind="none",
    )


def _versions_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        kind, key = finding.subject
        if kind == "none" and finding.user_id:
            reason = "It has no version that could run."
            capability_disable(user_id=finding.user_id, capability_id=key, reason=reason)
            continue
        with transaction.atomic():
            rows = Capability.objects.unscoped().select_for_update(of=("self",))
            capability = rows.select_related("current").get(pk=key)
            if capability.current is not None:
                capability.path = capability.current.path
                capability.save(update_fields=["path"])


def _files(user_id: UUID | None) -> Iterator[Finding]:
    """The files of versions against their checksums."""
    rows = rows_of(CapabilityVersion, user_id).order_by()
    for version in rows.only("user_id", "path", "checksums", "checksum").iterator(AT_ONCE):
        for file in FILES:
            try:
                files_verified(version, "it", [file])
            except CapabilityRefused:
                yield Finding(
                    about=f"{row_name(version)}, {version.path}/{file}",
                    message="The file is missing, cannot be read, or was changed after it was saved: the version is "
                    "not run.",
                    advice="Restore the file from a backup, save what is there as a new version on the capability's "
                    "page, or go back to an earlier version.",
                    user_id=version.user_id,
                )


def _folders(user_id: UUID | None) -> Iterator[Finding]:
    """Folders of capabilities and versions that no row names."""
    if user_id is not None:
        return
    storage = storages["shared"]
    try:
        folders, files = storage.listdir(ROOT)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in folders:
        versions, loose = storage.listdir(f"{ROOT}/{name}")
        paths = [f"{ROOT}/{name}/{each}" for each in versions]
        named = CapabilityVersion.objects.unscoped().filter(path__in=paths)
        known = set(named.values_list("path", flat=True))
        lost = [path for path in paths if path not in known]
        lost += [f"{ROOT}/{name}/{each}" for each in loose]
        if not versions and not loose:
            lost.append(f"{ROOT}/{name}")
        yield from map(_lost, sorted(lost))
    yield from (_lost(f"{ROOT}/{each}") for each in files)


def _lost(path: str) -> Finding:
    return Finding(
        about=f"folder {path}",
        message="No version of a capability lies there.",
        repair="Removes what lies there.",
        subject=path,
    )


def _folders_fix(found: Sequence[Finding]) -> None:
    storage = storages["shared"]
    for finding in found:
        path = finding.subject
        # Whoever writes a version does so inside a transaction of the capability's owner: inside of ours nobody is about to
        # name the folder. One of no capability was there when all who wrote then had ended: nobody will.
        with writing_for(_owner(path)), transaction.atomic():
            named = CapabilityVersion.objects.unscoped().filter(path=path)
            if path.count("/") == 1 and any(storage.listdir(path)):
                continue
            if named.exists():
                continue
            folder_remove(path)
            above = path.rpartition("/")[0]
            if above != ROOT and not any(storage.listdir(above)):
                folder_remove(above)


def _owner(path: str) -> UUID | None:
    """The user whose capability's folder it is, or lies in; None for nobody's."""
    with suppress(ValueError):
        rows = Capability.objects.unscoped().filter(pk=UUID(path.split("/")[1]))
        return rows.values_list("user_id", flat=True).first()
    return None


def _layers(user_id: UUID | None) -> Iterator[Finding]:
    """Installed requirements of users who are gone."""
    if user_id is not None:
        return
    names = layer_owners()
    if not names:
        return
    names.difference_update(map(layers_name, users_each(None)))
    for name in sorted(names):
        yield Finding(
            about=f"requirements of {name}",
            message="They were installed for a user who is gone.",
            repair="Removes them.",
            subject=name,
        )


def _layers_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        layers_remove(finding.subject)


indexed.register(Source.CAPABILITY, Indexed(Capability.objects.for_user, _documents))
integrity_checks.register(
    "capabilities: versions",
    Check("Capabilities are what their versions say", _versions, _versions_fix),
)
integrity_checks.register("capabilities: files", Check("Files are those that were saved", _files))
integrity_checks.register(
    "capabilities: folders", Check("Folders belong to versions", _folders, _folders_fix)
)
integrity_checks.register(
    "capabilities: requirements", Check("Installed requirements have an owner", _layers, _layers_fix)
)
disposable.add("capabilities.Execution")
