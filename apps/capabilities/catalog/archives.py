"""Capabilities taken out and brought in as zip files, with the care that others' files need."""

import io
import stat
import zipfile

from apps.capabilities.catalog.drafts import (
    MAIN,
    MANIFEST,
    REQUIREMENTS,
    RUN_MD,
    Draft,
    clean_permissions,
)
from apps.capabilities.catalog.files import FILES, GENERATED, files_read
from apps.capabilities.models import Capability
from apps.core.errors import DAMAGED, InvalidInput, TooLarge
from apps.core.http.drf import parse_json
from apps.core.text import depth_of

MAX_ARCHIVE_BYTES = 2_000_000
MAX_FILE_BYTES = 400_000
MAX_ENTRIES = 40
MAX_MANIFEST_DEPTH = 40


def archive_of(capability: Capability) -> bytes:
    """A zip with one folder, named after the capability, that holds the four files as they are on disk."""
    contents = files_read(capability.path) if capability.path else dict.fromkeys(FILES, "")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in FILES:
            archive.writestr(f"{capability.name}/{name}", contents[name])
    return buffer.getvalue()


def archive_read(data: bytes) -> tuple[str, Draft]:
    """`(name, draft)` of a zip, not yet checked as such. Raises InvalidInput (`invalid_archive`) or TooLarge.

    Only files named like the four count, all in one folder; paths that lead out, symbolic links, encrypted files and
    whatever unpacks to more than its limit refuse the whole archive. Nothing is written to disk.
    """
    if len(data) > MAX_ARCHIVE_BYTES:
        raise TooLarge(
            f"An archive has at most {MAX_ARCHIVE_BYTES:,} bytes.", field="file", limit=MAX_ARCHIVE_BYTES
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            texts = _texts(archive)
    except DAMAGED as error:
        raise _wrong(f"This is no zip file that can be read: {str(error)[:200]}") from error
    if MAIN not in texts or MANIFEST not in texts:
        raise _wrong(f"The archive must hold {MAIN} and {MANIFEST}.")
    return _draft(texts)


def _texts(archive: zipfile.ZipFile) -> dict[str, str]:
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MAX_ENTRIES:
        raise _wrong(f"The archive holds more than {MAX_ENTRIES} files.")
    folders = set()
    found: dict[str, str] = {}
    for entry in entries:
        _check_entry(entry)
        folder, _, name = entry.filename.rpartition("/")
        if name not in FILES or folder.startswith("__MACOSX"):
            continue
        folders.add(folder)
        if name in found or len(folders) > 1:
            raise _wrong("The archive holds more than one capability. Upload them one by one.")
        found[name] = _text(archive, entry)
    return found


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    if (
        not name
        or name.startswith("/")
        or ".." in name.split("/")
        or any(each in name for each in "\\:\x00")
    ):
        raise _wrong(f"The archive holds a path that leads out of it: {name[:100]!r}.")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise _wrong(f"{name[:100]!r} is a link or another special file.")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _wrong(f"{name[:100]!r} is packed in an unusual way.")
    if entry.flag_bits & 0x1:
        raise _wrong(f"{name[:100]!r} is encrypted.")


def _text(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """Reads no more than the limit, whatever the archive says about the size."""
    with archive.open(entry) as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        message = f"{entry.filename[:100]!r} is larger than {MAX_FILE_BYTES:,} bytes."
        raise TooLarge(message, field="file", limit=MAX_FILE_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(f"{entry.filename[:100]!r} is not text in UTF-8.") from error


def _draft(texts: dict[str, str]) -> tuple[str, Draft]:
    """Fields of the manifest that Izzy does not know are passed over. Raises InvalidInput (`invalid_manifest`)."""
    try:
        manifest = parse_json(texts[MANIFEST].encode())
    except InvalidInput as error:
        message = f"{MANIFEST} cannot be used: {error.message[:200]}"
        raise InvalidInput(message, code="invalid_manifest", field=MANIFEST) from error
    if not isinstance(manifest, dict) or depth_of(manifest) > MAX_MANIFEST_DEPTH:
        raise InvalidInput(
            f"{MANIFEST} must hold one JSON object.", code="invalid_manifest", field=MANIFEST
        )
    permissions = manifest.get("permissions")
    if isinstance(permissions, dict):
        permissions = {name: permissions[name] for name in ("hosts", "secrets") if name in permissions}
    hosts, secrets = clean_permissions(permissions)
    guide = texts.get(RUN_MD, "")
    return str(manifest.get("name", "")), Draft(
        description=manifest.get("description") or "",
        input_schema=manifest.get("input_schema") or {},
        main=texts[MAIN],
        requirements=texts.get(REQUIREMENTS, ""),
        run_md="" if GENERATED in guide else guide,
        output_schema=manifest.get("output_schema") or {},
        tags=manifest.get("tags") or (),
        hosts=hosts,
        secrets=secrets,
        examples=manifest.get("examples") or (),
    )


def _wrong(message: str) -> InvalidInput:
    return InvalidInput(message, code="invalid_archive", field="file")
