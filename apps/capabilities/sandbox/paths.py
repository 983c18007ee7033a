"""Where a caller may write in a sandbox's home."""

from pathlib import PurePosixPath

from apps.core.errors import InvalidInput

HOME = PurePosixPath("/home/user")
WRITABLE = (HOME, PurePosixPath("/tmp"))  # noqa: S108  of the sandbox
MAX_PATH_BYTES = 1000


def writable_path(path: str) -> str:
    """Absolute and in the home directory or in /tmp of the sandbox. Raises InvalidInput."""
    if not path or "\x00" in path or len(path.encode("utf-8", "replace")) > MAX_PATH_BYTES:
        raise InvalidInput("That is no file name.", field="path")
    full = HOME / path
    inside = any(place in full.parents for place in WRITABLE)
    if ".." in full.parts or not inside or path.endswith("/"):
        raise InvalidInput(f"{path[:200]} is outside the sandbox's home directory and /tmp.", field="path")
    return str(full)
