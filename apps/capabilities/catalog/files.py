"""The four files of a version in the storage, and whether they are still those that were saved."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import transaction

from apps.capabilities.catalog.drafts import MAIN, MANIFEST, REQUIREMENTS, RUN_MD, Draft, run_docstring
from apps.capabilities.models import Capability, CapabilityVersion
from apps.core.errors import Conflict, Unavailable
from apps.core.purging.trace import Trace

FILES = (MAIN, REQUIREMENTS, MANIFEST, RUN_MD)
ROOT = "capabilities"
MAX_READ_BYTES = 1_000_000
GENERATED = "Called automatically by Izzy when relevant, as the tool `cap_"
"""Stands in each RUN.md that Izzy made itself: from an archive it is made anew then."""


class CapabilityRefused(Conflict):
    """It exists but may not run now. Codes: `building`, `failed`, `disabled`, `not_approved`, `version_changed`,
    `tampered`, `missing_secret`. `extra` names the capability."""

    def __init__(self, code: str, name: str, message: str) -> None:
        super().__init__(message, code=code, capability=name)


def run_md_of(name: str, draft: Draft) -> str:
    """RUN.md: what the model reads when the schema alone does not say enough."""
    parts = [
        f"# {name}",
        draft.description,
        "## Usage",
        f"{GENERATED}{name}`, or by `execute_capability`.",
    ]
    if notes := run_docstring(draft.main):
        parts.append(notes)
    parts += ["## Input", _block(draft.input_schema)]
    shape = f" It has this shape:\n\n{_block(draft.output_schema)}" if draft.output_schema else ""
    parts += ["## Result", f"Text.{shape}"]
    for example in draft.examples[:5]:
        expected = (
            f"\n\nResult (or a part of it): `{example['expect']}`" if example.get("expect") else ""
        )
        parts += ["## Example", f"{_block(example['input'])}{expected}"]
    allowed = [f"- host `{host}`" for host in draft.hosts] + [
        f"- secret `{name}`, given as an environment variable" for name in draft.secrets
    ]
    parts += ["## Permissions", "\n".join(allowed) if allowed else "None: no network, no secrets."]
    lines = [line.strip() for line in draft.requirements.splitlines()]
    if needs := [line for line in lines if line and not line.startswith("#")]:
        parts += ["## Requirements", "\n".join(f"- {line}" for line in needs)]
    return "\n\n".join(parts) + "\n"


def contents_of(capability: Capability, draft: Draft, number: int, now: datetime) -> dict[str, str]:
    """The four files' texts by name."""
    manifest = {
        "name": capability.name,
        "description": draft.description,
        "version": number,
        "input_schema": draft.input_schema,
        "output_schema": draft.output_schema,
        "tags": list(draft.tags),
        "permissions": {"hosts": list(draft.hosts), "secrets": list(draft.secrets)},
        "examples": list(draft.examples),
        "created_at": capability.created_at.isoformat(),
        "updated_at": now.isoformat(),
    }
    return {
        MAIN: draft.main,
        REQUIREMENTS: draft.requirements,
        MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        RUN_MD: draft.run_md or run_md_of(capability.name, draft),
    }


def checksums_of(contents: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """`({name: SHA-256}, the checksum of all)`."""
    single = {name: hashlib.sha256(contents[name].encode()).hexdigest() for name in FILES}
    return single, _checksum_of(single)


def _checksum_of(checksums: Mapping[str, str]) -> str:
    joined = "\n".join(f"{name} {checksums[name]}" for name in FILES)
    return hashlib.sha256(joined.encode()).hexdigest()


def files_write(
    capability: Capability, draft: Draft, number: int, now: datetime
) -> tuple[str, dict[str, str], str]:
    """Writes the folder of a version and returns it with the files' checksums; what a crash left there is replaced."""
    contents = contents_of(capability, draft, number, now)
    storage = storages["shared"]
    path = f"{ROOT}/{capability.pk}/v{number}"
    for name, text in contents.items():
        target = f"{path}/{name}"
        storage.delete(target)
        if storage.save(target, ContentFile(text.encode())) != target:
            raise OSError(f"{target} is in the way")
    return path, *checksums_of(contents)


def files_read(path: str) -> dict[str, str]:
    """The texts as they are on disk now, "" for one that is missing or cannot be read as text."""
    return {name: _read(f"{path}/{name}") or "" for name in FILES}


def files_verified(
    version: CapabilityVersion, name: str, files: Collection[str] = FILES
) -> dict[str, str]:
    """The files of a version, all or those given, if they are as they were saved. Raises CapabilityRefused (`tampered`)."""
    contents: dict[str, str] = {}
    for file in files:
        text = _read(f"{version.path}/{file}")
        if text is None or hashlib.sha256(text.encode()).hexdigest() != version.checksums.get(file):
            raise _tampered(name, file, missing=text is None)
        contents[file] = text
    if files is FILES and _checksum_of(version.checksums) != version.checksum:
        raise _tampered(name, MAIN, missing=False)
    return contents


def is_tampered(version: CapabilityVersion, name: str) -> bool:
    """Whether a file of the version is not the one that was saved."""
    try:
        files_verified(version, name)
    except CapabilityRefused:
        return True
    return False


def _tampered(name: str, file: str, *, missing: bool) -> CapabilityRefused:
    what = "is missing or cannot be read" if missing else "was changed on disk after it was saved"
    message = (
        f"{file} of {name} {what}, so it is not run. Look at its page: save what is there as a new version, or go back to "
        "an earlier one."
    )
    return CapabilityRefused("tampered", name, message)


def files_named() -> Iterator[tuple[str, str]]:
    """For backups: (path, SHA-256) of the files of all versions."""
    rows = CapabilityVersion.objects.unscoped().order_by().values_list("path", "checksums")
    for path, checksums in rows.iterator():
        for name in FILES:
            yield f"{path}/{name}", checksums.get(name, "")


def folders_remove(*paths: str) -> None:
    """Removes folders of versions when the transaction is committed, or with that of a capability all of its versions."""
    for path in paths:
        transaction.on_commit(partial(folder_remove, path))


def folder_remove(path: str) -> None:
    """Removes a folder with what lies in it, at once."""
    storage = storages["shared"]
    if not path.startswith(f"{ROOT}/") or ".." in path:
        raise ValueError(path)
    try:
        folders, names = storage.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        storage.delete(f"{path}/{name}")
    for folder in folders:
        folder_remove(f"{path}/{folder}")
    storage.delete(path)


def _block(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```"


def _read(name: str) -> str | None:
    """None for what is no file of its own: a link put there, or as one of its folders, could show any file that the server can
    read."""
    storage = storages["shared"]
    try:
        with suppress(NotImplementedError):  # where it is not on the server's own disk
            path = Path(storage.path(name))
            if any(part.is_symlink() for part in (path, *list(path.parents)[: name.count("/")])):
                return None
        with storage.open(name, "rb") as file:
            data: bytes = file.read(MAX_READ_BYTES + 1)
        return data.decode() if len(data) <= MAX_READ_BYTES else None
    except Unavailable:  # the store is away: that is another matter than a file which is not what it was
        raise
    except (OSError, ValueError):  # a UnicodeDecodeError among them
        return None


def files_left(trace: Trace) -> dict[str, int]:
    """How many versions' files quote what is purged, by the place's name."""
    paths = CapabilityVersion.objects.for_user(trace.user_id).values_list("path", flat=True)
    quoting = sum(
        any(trace.same.match(_read(f"{path}/{name}") or "") for name in FILES)
        for path in paths.iterator()
    )
    return {"capabilities.files": quoting}
