"""Working something long out in a Python of its own, where it holds up no other request of this process.

Threads do not help: Python's parser, and every loop over a long text, keep the interpreter to themselves. That process imports no Django.
"""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from apps.core.errors import Unavailable

ROOT = Path(__file__).parents[3]
SECONDS = 60  # a longer call is given up

T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: object) -> T:
    """`function(*arguments)`, a function of a module that needs no Django; starting costs some 0.1 s.

    Raises what the function raises, and Unavailable where that process dies or takes longer than SECONDS. It runs here
    where no process can be started.
    """
    command = [sys.executable, "-m", "apps.core.jobs.apart"]
    try:
        done = subprocess.run(  # noqa: S603 -- our own interpreter
            command,
            input=pickle.dumps((function, arguments)),
            capture_output=True,
            timeout=SECONDS,
            cwd=ROOT,
        )
    except OSError:
        return function(*arguments)
    except subprocess.TimeoutExpired as error:
        raise Unavailable("That took too long. Try again with less of it.") from error
    if done.returncode:
        raise Unavailable("That could not be worked out just now. Try again.")
    result, raised = pickle.loads(done.stdout)  # noqa: S301 -- what our own process wrote
    if raised is not None:
        raise raised
    return result  # type: ignore[no-any-return]


def main() -> None:
    """That process: it reads a function and its arguments, and writes what it returns or raises."""
    function, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 -- what our own process wrote
    result: object = None
    raised: Exception | None = None
    try:
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001 -- raised again by the process that asked
        raised = error
    sys.stdout.buffer.write(pickle.dumps((result, raised)))


if __name__ == "__main__":
    main()
