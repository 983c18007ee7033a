"""How a database is named in DATABASES. Imports nothing of Django: settings are made of it."""

from pathlib import Path
from typing import Any

SQLITE = "apps.core.db.sqlite"
POSTGRESQL = "apps.core.db.postgresql"

SQLITE_OPTIONS = {
    # A transaction takes the write lock when it begins and waits for it; a deferred one that comes to
    # write later fails at once when another has written in between, however long the busy timeout.
    "transaction_mode": "IMMEDIATE",
    "timeout": 30,
    "init_command": (
        "PRAGMA journal_mode=WAL;"
        "PRAGMA synchronous=NORMAL;"
        "PRAGMA cache_size=-32000;"
        "PRAGMA mmap_size=268435456;"
        "PRAGMA temp_store=MEMORY;"
        "PRAGMA journal_size_limit=67108864;"
        # What is deleted is overwritten with zeros, so that nothing of it can be read out of the file.
        "PRAGMA secure_delete=ON;"
    ),
}


def sqlite_settings(file: Path) -> dict[str, Any]:
    """DATABASES' entry for a file."""
    return {"ENGINE": SQLITE, "NAME": file, "OPTIONS": SQLITE_OPTIONS}
