"""The program that runs within a sandbox at E2B: `inside.py` with what it shares with the local sandbox, in one file."""

from functools import cache
from pathlib import Path

from ..bubblewrap.inside import answers

SHARED = (
    "from apps.capabilities.sandbox.bubblewrap.inside.answers import checked, failure, flush, write_all\n"
)
FUTURE = "from __future__ import annotations\n"


@cache
def inside_script() -> str:
    """Its text: the shared module stands where `inside.py` imports from it."""
    own = Path(__file__).with_name("inside.py").read_text(encoding="utf-8")
    shared = Path(answers.__file__).read_text(encoding="utf-8")
    before, importing, after = own.partition(SHARED)
    if not importing:
        raise ValueError("inside.py imports nothing of what is shared")
    return before + shared.partition(FUTURE)[2] + after
