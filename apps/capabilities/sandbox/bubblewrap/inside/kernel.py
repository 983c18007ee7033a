"""A child that keeps its variables from one piece of code to the next."""

from __future__ import annotations

import _socket

from .answers import failure, flush
from .children import await_frame, fork, frame_bytes, in_child, packed, prepare_python, received

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any


class Kernel:
    def __init__(self, descriptors: list[int], limits: dict[str, int]) -> None:
        """`descriptors` are those that the child must not have."""
        self.limit = limits["frame"]
        self.channel, inner = _socket.socketpair()
        self.pid = fork()
        if self.pid == 0:
            closed = [*descriptors, self.channel.detach()]
            in_child(closed, limits, lambda: serve_code(inner, limits["value"]))
        inner.close()

    def run(self, code: bytes) -> bytes | int:
        """Its answer, or the exit code where it died."""
        try:  # noqa: SIM105  contextlib is not loaded
            self.channel.sendall(packed(code))
        except OSError:
            pass  # it is gone: its exit code is the answer
        answer = await_frame(self.channel.fileno(), self.pid, self.limit)
        if isinstance(answer, int):
            self.channel.close()
        return answer


def serve_code(channel: _socket.socket, value_limit: int) -> None:
    """Until the runner goes. SIGINT ends the code under way, and does nothing between two pieces."""
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    prepare_python()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells: dict[str, str] = {}
    while True:
        code = received(channel, int.from_bytes(received(channel, 4), "big")).decode()
        name = f"<code {len(cells) + 1}>"
        cells[name] = code
        try:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
            answer = {"value": run_cell(code, name, namespace, value_limit)}
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        except BaseException as error:  # noqa: BLE001  also SystemExit: the kernel lives on
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
            import linecache

            for cell, text in cells.items():  # so that a traceback quotes lines that stand in no file
                linecache.cache[cell] = (len(text), None, text.splitlines(keepends=True), cell)
            answer = failure(error)
            if isinstance(error, KeyboardInterrupt):
                answer["code"] = "interrupted"
        flush()
        channel.sendall(packed(frame_bytes(answer)))


def run_cell(code: str, name: str, namespace: dict[str, Any], value_limit: int) -> str:
    """The repr of a last expression, else nothing."""
    import ast

    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)  # noqa: S102  what a kernel is for
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307
    namespace["_"] = value
    shown = "" if value is None else repr(value)
    return shown if len(shown) <= value_limit else f"{shown[:value_limit]}… ({len(shown):,} characters)"
