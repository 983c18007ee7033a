"""Runs in the sandbox, on its own: calls `run(args)` of main.py and answers behind a mark that the tool does not know.

Usage: `python3 inside.py`, with `job.json` beside it: `{mark, args, result_bytes, memory_bytes, cpu_seconds, file_bytes}`.
The tool runs in a child and answers over a pipe; the parent prints that as the last line of standard output: the mark, then
JSON in ASCII. The job is deleted before any code of the tool is run.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import traceback
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
TRACEBACK_FRAMES = 12
TRACEBACK_CHARS = 4000
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
        os.close(reading)
        run_tool(job, writing)
    os.close(writing)
    answer = awaited(reading, pid)
    write_all(1, b"\n" + mark.encode() + b" " + answer + b"\n")


def awaited(reading: int, pid: int) -> bytes:
    """The tool's answer, or what is to be said of its end."""
    said, status = b"", None
    while True:
        if select.select([reading], [], [], 0.05 if status is None else 0)[0]:
            part = os.read(reading, 1_000_000)
            said += part
            if len(said) >= HEAD and len(said) >= HEAD + int(said[:HEAD]):
                os.kill(pid, signal.SIGKILL)  # it has answered; threads that it left would keep it
                return said[HEAD:]
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
        set_limits(job)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
        sys.path[0] = os.getcwd()
        sys.argv[:] = ["main.py"]
        import main as tool  # type: ignore[import-not-found]

        answer = checked(tool.run(job["args"]), job["result_bytes"])
    except BaseException as error:  # noqa: BLE001  also SystemExit: the answer says so
        answer = failure(error)
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105
            stream.flush()
        except Exception:  # noqa: BLE001, S110  a tool may have put anything in its place
            pass
    said = json.dumps(answer).encode()
    write_all(writing, str(len(said)).zfill(HEAD).encode() + said)
    os._exit(0)


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def set_limits(job: dict[str, Any]) -> None:
    for limit, value in (
        (resource.RLIMIT_AS, job["memory_bytes"]),
        (resource.RLIMIT_FSIZE, job["file_bytes"]),
        (resource.RLIMIT_CPU, job["cpu_seconds"]),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))


def checked(result: object, limit: int) -> dict[str, Any]:
    if not isinstance(result, str):
        message = f"run(args) must return text (str), not {type(result).__name__}. Use json.dumps for data."
        return {"code": "bad_result", "message": message}
    size = len(result.encode("utf-8", "replace"))
    if size > limit:
        message = f"The result has {size:,} bytes; at most {limit:,} can be returned."
        return {"code": "bad_result", "message": message}
    return {"result": str(result)}


def failure(error: BaseException) -> dict[str, Any]:
    try:
        code = "out_of_memory" if isinstance(error, MemoryError) else "raised"
        return {"code": code, "message": traceback_tail(error)}
    except BaseException:  # noqa: BLE001  a __str__ that raises; no memory left to format it
        return {"code": "raised", "message": f"{type(error).__name__} (its text could not be made)"}


def traceback_tail(error: BaseException) -> str:
    """The last lines, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(HERE):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace, limit=-TRACEBACK_FRAMES)
    return end_of("".join(lines).strip(), TRACEBACK_CHARS)


def end_of(text: str, length: int) -> str:
    """Its last characters, from the beginning of a word: half a secret could not be recognised and taken out."""
    if len(text) <= length:
        return text
    words = text[-length:].split(None, 1)
    return f"… {words[1]}" if len(words) == 2 else "…"


def ended(status: int) -> dict[str, Any]:
    """What is said of a tool that ended without an answer."""
    if not os.WIFSIGNALED(status):
        message = f"The tool ended itself (exit code {os.WEXITSTATUS(status)}) instead of returning a result."
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
