"""Checks a tool's requirements.txt: only names with extras, versions and markers (PEP 508). Nothing that names a place:
options, addresses and paths could install from anywhere."""

import re
from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from apps.agent.tools.results import MIN_SECRET_CHARS, Scrubber
from apps.core.errors import InvalidInput

PUBLIC_INDEX, PUBLIC_FILES = (
    ".".join(labels) for labels in (("pypi", "org"), ("files", "pythonhosted", "org"))
)
"""Where packages come from unless a machine is set up otherwise: the public index, and the host of its files."""

MAX_BYTES = 10_000
MAX_LINES = 50
MAX_LINE_CHARS = 300  # of a line without its comment

QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
VERSION = re.compile(r"[A-Za-z0-9.*+!_-]+")
ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txt", ".toml")
COMMENT = re.compile(r"(?:^|\s)#.*$")


def parse_requirements(text: str, secrets: Sequence[str] = ()) -> list[str]:
    """The requirements in one spelling, sorted, each once. Raises InvalidInput that names the line, and for lines that hold
    one of the secrets: the package index is asked for whatever stands there."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _refused(f"requirements.txt may have {MAX_BYTES:,} bytes at most.")
    if not text.strip():
        return []
    # A secret may also stand there in the spelling that a package's name would get, or spread over lines.
    lines = [COMMENT.sub("", line.lstrip("\ufeff")) for line in text.splitlines()]
    squeezed = _squeezed("".join(lines))
    small = [each for secret in secrets if len(each := _squeezed(secret)) >= MIN_SECRET_CHARS]
    scrubber = Scrubber(secrets)
    if any(each in squeezed for each in small) or any(scrubber.text(line) != line for line in lines):
        raise _refused(
            "requirements.txt holds a secret or a key, which the package index would get to see. Name packages alone."
        )
    wanted = [(line.strip(), number) for number, line in enumerate(lines, 1) if line.strip()]
    if len(wanted) > MAX_LINES:
        raise _refused(f"requirements.txt may name {MAX_LINES} packages at most.")
    return sorted({_requirement(line, number) for line, number in wanted})


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _requirement(line: str, number: int) -> str:
    if problem := _forbidden(line):
        raise _refused(f"requirements.txt, line {number}: {problem} ({line[:80]!r}).")
    try:
        requirement = Requirement(line)
        extras = ",".join(sorted(canonicalize_name(extra) for extra in requirement.extras))
        versions = str(requirement.specifier)
        marker = f" ; {requirement.marker}" if requirement.marker else ""
        spelled = (
            f"{canonicalize_name(requirement.name)}{f'[{extras}]' if extras else ''}{versions}{marker}"
        )
        # Text of a marker in the other kind of quotes, and === with anything behind it, would be read as something else.
        is_plain = all(VERSION.fullmatch(each.version) for each in requirement.specifier)
        if not is_plain or any("'" in text[1:-1] or '"' in text[1:-1] for text in QUOTED.findall(line)):
            raise InvalidRequirement
    except (InvalidRequirement, RecursionError) as error:
        message = f"requirements.txt, line {number}: {line[:80]!r} is no requirement. Write NAME or NAME==VERSION."
        raise _refused(message) from error
    return spelled


def _forbidden(line: str) -> str:
    if len(line) > MAX_LINE_CHARS:
        return f"a line has {MAX_LINE_CHARS} characters at most"
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
