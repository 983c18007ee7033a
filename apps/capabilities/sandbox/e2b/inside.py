"""Runs in the sandbox, on its own: calls `run(args)` of main.py and answers behind a mark that the tool does not print.

`answers` puts in what it shares with the local sandbox. Usage: `python3 inside.py`, with `job.json` beside it: `{mark, args, result_bytes, memory_bytes, cpu_seconds, file_bytes}`.
The tool runs in a child and answers over a pipe; the parent prints that as the last of standard output: the mark, then JSON
in ASCII. The job is deleted before any code of the tool is run.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from typing import Any

from apps.capabilities.sandbox.bubblewrap.inside.answers import checked, failure, flush, write_all

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = 16
"""Characters of the length in front of an answer: the pipe may stay open in what the tool left running."""


def main() -> None:
    place = os.path.join(HERE, "job.json")
    with open(place, encoding="utf-8") as file:
        job = json.load(file)
    os.unlink(place)
    mark = job.pop("mark")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        del mark
        os.close(reading)
        run_tool(job, writing)
    os.close(writing)
    answer = awaited(reading, pid)
    write_all(1, mark.encode() + b" " + answer + b"\n")


def awaited(reading: int, pid: int) -> bytes:
    """The tool's answer, or what is to be said of its end."""
    answer, status = b"", None
    while True:
        if select.select([reading], [], [], 0.05 if status is None else 0)[0]:
            part = os.read(reading, 1_000_000)
            answer += part
            if len(answer) >= HEAD and len(answer) >= HEAD + int(answer[:HEAD]):
                if status is None:
                    os.kill(pid, signal.SIGKILL)  # it has answered; threads that it left would keep it
                return answer[HEAD:]
            if part:
                continue
        if status is not None:
            return json.dumps(ended(status)).encode()
        done, found = os.waitpid(pid, os.WNOHANG)
        status = found if done else None


def run_tool(job: dict[str, Any], writing: int) -> None:
    """Never returns."""
    os.set_inheritable(writing, False)
    try:
        for limit, value in (
            (resource.RLIMIT_AS, job["memory_bytes"]),
            (resource.RLIMIT_FSIZE, job["file_bytes"]),
            (resource.RLIMIT_CPU, job["cpu_seconds"]),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(limit, (value, value))
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
        sys.path[0] = os.getcwd()
        sys.argv[:] = ["main.py"]
        import main as tool  # type: ignore[import-not-found]

        answer = checked(tool.run(job["args"]), job["result_bytes"])
    except BaseException as error:  # noqa: BLE001  also SystemExit: the answer says so
        answer = failure(error)
    flush()
    data = json.dumps(answer).encode()
    write_all(writing, str(len(data)).zfill(HEAD).encode() + data)
    os._exit(0)


def ended(status: int) -> dict[str, Any]:
    """The answer for a tool that ended without one."""
    if not os.WIFSIGNALED(status):
        message = (
            f"The tool ended itself (exit code {os.WEXITSTATUS(status)}) instead of returning a result."
        )
        return {"code": "raised", "message": message}
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU:
        return {"code": "timed_out", "message": "The tool used up its processor time."}
    if number == signal.SIGKILL:
        message = "The tool was killed, most likely because the memory did not suffice."
        return {"code": "out_of_memory", "message": message}
    return {"code": "raised", "message": f"The tool was ended by {signal.Signals(number).name}."}


if __name__ == "__main__":
    main()
