"""`runtime_lock.py requirements.lock NAMES`: the entries of the lock that NAMES (a resolution without hashes) asks for.

So that an image holds what is needed at run time, in the versions and with the hashes of the lock. Ends with 1 where the lock
lacks one of them. Needs nothing but Python's standard library.
"""

import re
import sys
from pathlib import Path

PINNED = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^\s;\\]+)")


def entries(text: str) -> dict[tuple[str, str], str]:
    """The entries of a lock, each with its lines of hashes, by normalised name and version."""
    found: dict[tuple[str, str], str] = {}
    key = None
    for line in text.splitlines():
        if match := PINNED.match(line):
            key = normalised(match[1]), match[2]
            found[key] = line
        elif key is not None and line.startswith(" "):
            found[key] += "\n" + line
        else:
            key = None
    return found


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(lock: str, names: str) -> str:
    """The smaller lock. SystemExit where something is missing, or has no hash."""
    held = entries(Path(lock).read_text())
    wanted = entries(Path(names).read_text())
    missing = [
        f"{name}=={version}"
        for name, version in wanted
        if "--hash=" not in held.get((name, version), "")
    ]
    if missing or not wanted:
        raise SystemExit(f"{lock} lacks {', '.join(missing) or 'everything'}.")
    return "\n".join(held[key] for key in wanted)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
