"""What a requirements.txt of a tool may hold: names with extras, versions and markers (PEP 508). Nothing that names a place:
options, addresses and paths could install from anywhere."""

import re

from apps.core.errors import InvalidInput

MAX_BYTES = 10_000
MAX_LINES = 50

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"
VERSION = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]{0,60}"
REQUIREMENT = re.compile(
    rf"(?P<name>{NAME})\s*(?:\[\s*(?P<extras>{NAME}(?:\s*,\s*{NAME})*)\s*\])?"
    rf"\s*(?P<versions>\(?\s*{VERSION}(?:\s*,\s*{VERSION})*\s*\)?)?\s*(?:;\s*(?P<marker>[^;#\\]{{1,300}}))?"
)
MARKER = re.compile(r"""(?:[A-Za-z0-9_.()<>=!~ ]|"[A-Za-z0-9_. +-]*"|'[A-Za-z0-9_. +-]*')+""")
ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txt", ".toml", ".py")
COMMENT = re.compile(r"(?:^|\s)#.*$")


def parse_requirements(text: str) -> list[str]:
    """The requirements in one spelling, sorted, each once. Raises InvalidInput that names the line."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _refused(f"requirements.txt may have {MAX_BYTES:,} bytes at most.")
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        wanted = COMMENT.sub("", line.lstrip("\ufeff")).strip()
        if wanted:
            found.add(_requirement(wanted, number))
    if len(found) > MAX_LINES:
        raise _refused(f"requirements.txt may name {MAX_LINES} packages at most.")
    return sorted(found)


def _requirement(line: str, number: int) -> str:
    if problem := _forbidden(line):
        raise _refused(f"requirements.txt, line {number}: {problem} ({line[:80]!r}).")
    match = REQUIREMENT.fullmatch(line)
    marker = match["marker"].strip() if match and match["marker"] else ""
    if match is None or (marker and not MARKER.fullmatch(marker)):
        message = (
            f"requirements.txt, line {number}: {line[:80]!r} is no requirement. Write NAME or NAME==VERSION."
        )
        raise _refused(message)
    name = re.sub(r"[-_.]+", "-", match["name"]).lower()
    extras = ",".join(sorted(part.strip().lower() for part in (match["extras"] or "").split(",") if part))
    versions = ",".join(sorted(re.sub(r"[\s()]", "", match["versions"] or "").split(",")))
    return f"{name}{f'[{extras}]' if extras else ''}{versions}{f' ; {marker}' if marker else ''}"


def _forbidden(line: str) -> str:
    if line.startswith("-"):
        return "options are not allowed, only names of packages"
    if "://" in line or line.lower().startswith(("git+", "file:")):
        return "addresses are not allowed: packages come from the index alone"
    if "@" in line:
        return "NAME @ ADDRESS is not allowed: packages come from the index alone"
    if line.endswith("\\"):
        return "lines cannot be continued"
    if "/" in line or line.startswith(".") or line.lower().endswith(ARCHIVES):
        return "files and folders are not allowed, only names of packages"
    return ""


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, code="bad_requirements", field="requirements.txt")
