"""Where files may be put in the sandbox."""

from posixpath import join, normpath

from apps.core.errors import InvalidInput

HOME = "/home/user"
ROOTS = (HOME, "/tmp")  # noqa: S108  within the sandbox


def checked_path(path: str) -> str:
    """The absolute path; a relative one counts from the home directory. Raises InvalidInput outside of that and /tmp."""
    full = normpath(join(HOME, path))
    if "\x00" in path or not any(full.startswith(f"{root}/") for root in ROOTS):
        raise InvalidInput(f"{path!r} is outside of the sandbox's folders.", field="path")
    return full
