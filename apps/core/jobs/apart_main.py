"""The process of `apart`: reads a function and its arguments, writes what it gives or raises."""

import pickle
import sys


def main() -> None:
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
