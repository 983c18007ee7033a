"""The loopback E2B's interpreter, run inside its sandbox: JSON lines in (`code`, `envs`, or `interrupt`), JSON lines out."""

import ast
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from typing import Any

replies = os.fdopen(os.dup(1), "w")
jobs: "queue.Queue[dict[str, Any]]" = queue.Queue()


class Told:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def write(self, text: str) -> int:
        if text:
            tell(type=self.kind, text=text, timestamp=time.time_ns())
        return len(text)

    def flush(self) -> None: ...


def tell(**message: object) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def listen() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        if "interrupt" in job:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            jobs.put(job)
    os._exit(0)


def run(code: str, namespace: dict[str, Any]) -> None:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), namespace)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
        if value is not None:
            tell(type="result", text=repr(value), is_main_result=True)


def main() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    # As in a notebook, modules are found in the home directory.
    sys.path[0] = os.getcwd()
    # What a shell starts in the background ignores SIGINT, and so does all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=listen, daemon=True).start()
    sys.stdout, sys.stderr = Told("stdout"), Told("stderr")
    while True:
        try:
            job = jobs.get()
            os.environ.update(job.get("envs") or {})
            count += 1
            run(job["code"], namespace)
        except BaseException as error:  # noqa: BLE001  the kernel lives on
            tell(
                type="error",
                name=type(error).__name__,
                value=str(error),
                traceback=traceback.format_exc(),
            )
        tell(type="number_of_executions", execution_count=count)
        tell(type="end")


main()
