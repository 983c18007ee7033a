"""A capability's run(args), in a child of its own."""

from __future__ import annotations

import gc

from .children import failure, flush, prepare_python
from .frames import frame_bytes, packed, write_all

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


def checked(result: object, limit: int) -> dict[str, Any]:
    if not isinstance(result, str):
        message = f"run(args) must return text (str), not {type(result).__name__}. Use json.dumps for data."
        return {"code": "bad_result", "message": message}
    size = len(result.encode("utf-8", "replace"))
    if size > limit:
        message = f"The result has {size:,} bytes; at most {limit:,} can be returned."
        return {"code": "bad_result", "message": message}
    return {"result": str(result)}
