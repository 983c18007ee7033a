"""A capability's run(args), in a child of its own."""

from __future__ import annotations

import gc

from .answers import checked, failure, flush, write_all
from .children import prepare_python
from .frames import frame_bytes, packed

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any


def run_tool(args: dict[str, Any], writing: int, limit: int) -> None:
    """Import main.py, call run(args), answer."""
    prepare_python()
    try:
        gc.disable()  # nothing that an import makes is garbage: looking for it takes a tenth of the time
        import main  # type: ignore[import-not-found]

        gc.enable()
        answer = checked(main.run(args), limit)
    except BaseException as error:  # noqa: BLE001  also SystemExit: the answer says so
        answer = failure(error)
    flush()
    write_all(writing, packed(frame_bytes(answer)))
