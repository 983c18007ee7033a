"""A loopback E2B: control plane, envd and interpreter on one port, as the real SDK speaks to them.

    async with E2BServer() as e2b:
        monkeypatch.setenv("E2B_API_URL", e2b.url); monkeypatch.setenv("E2B_SANDBOX_URL", e2b.url)

Sandboxes really run what they are given: in bubblewrap on this machine, with a home directory of their own, without network
unless something is allowed. It is no security boundary. `sandboxes` are those alive, `ended` the ids of the others, `created` the bodies of the requests
that made them, `networks` later changes of their network.
"""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote
from uuid import uuid4

from tests.peers.e2b_wire import (
    Call,
    envelope,
    read_call,
    send,
    send_bytes,
    send_chunk,
    send_event,
    send_head,
    uploads,
)

KERNEL = Path(__file__).with_name("e2b_kernel.py")


@dataclass
class Machine:
    """One sandbox."""

    id: str
    body: dict[str, Any]
    root: Path
    network: dict[str, Any]
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    kernel: asyncio.subprocess.Process | None = None
    kernel_free: asyncio.Lock = field(default_factory=asyncio.Lock)
    end: asyncio.TimerHandle | None = None

    def path(self, path: str) -> Path:
        """Where one of its files lies on this machine."""
        for inside, outside in (("/home/user", "home"), ("/tmp", "tmp")):
            if path == inside or path.startswith(f"{inside}/"):
                return self.root / outside / path.removeprefix(inside).lstrip("/")
        return self.root / "home" / path

    async def start(
        self, argv: list[str], *, envs: dict[str, str], cwd: str = "", pipe_in: bool = False
    ) -> Any:
        """A process within."""
        base = Path(sys.base_prefix) / "bin"
        env = {
            "PATH": f"{base}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/home/user",
            "LANG": "C.UTF-8",
        } | envs
        network = [] if self.network.get("allowOut") else ["--unshare-net"]
        wrapped = [
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/home"),
            *("--bind", str(self.root / "home"), "/home/user", "--bind", str(self.root / "tmp"), "/tmp"),
            *("--unshare-pid", "--die-with-parent", "--clearenv", *network),
            *(part for name, value in env.items() for part in ("--setenv", name, value)),
            *("--chdir", cwd or "/home/user", *argv),
        ]
        process = await asyncio.create_subprocess_exec(
            *wrapped,
            stdin=asyncio.subprocess.PIPE if pipe_in else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**26,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def stop(self, process: asyncio.subprocess.Process) -> None:
        """Ends a process with all it started; the number of one that has ended may be another's by now."""
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Everything in it ends, and its files go."""
        if self.end:
            self.end.cancel()
        for process in self.processes:
            self.stop(process)
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass
class E2BServer:
    """See the module's docstring. `refuse` is a status with which the next sandboxes are refused, `index_url` where pip in them finds packages."""

    api_key: str = "e2b_0123456789abcdef"
    port: int = 0
    refuse: int = 0
    index_url: str = ""
    sandboxes: dict[str, Machine] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    networks: list[dict[str, Any]] = field(default_factory=list)
    timeouts: list[int] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    hold: asyncio.Event | None = None
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "E2BServer":
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for machine in list(self.sandboxes.values()):
            self.kill(machine.id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(*(process.wait() for process in self.processes))
        for process in self.processes:  # else its pipes close when they are collected, in any loop
            process._transport.close()  # type: ignore[attr-defined]

    def kill(self, sandbox_id: str) -> bool:
        """Ends a sandbox, as its time limit does."""
        machine = self.sandboxes.pop(sandbox_id, None)
        if machine is not None:
            self.ended.append(sandbox_id)
            self.processes += machine.processes
            machine.kill()
        return machine is not None

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (call := await read_call(reader)) is not None:
                await self._answer(call, reader, writer)
        writer.close()

    async def _answer(
        self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if "e2b-sandbox-id" in call.headers:
            await self._inside(call, reader, writer)
        elif call.headers.get("x-api-key") != self.api_key:
            send(writer, 401, {"code": 401, "message": "Invalid API key"})
        else:
            await self._control(call, writer)
        await writer.drain()

    # --- Control plane

    async def _control(self, call: Call, writer: asyncio.StreamWriter) -> None:
        parts = call.path.strip("/").removeprefix("v2/").split("/")
        if parts == ["sandboxes"] and call.method == "POST":
            await self._create(call, writer)
        elif parts == ["sandboxes"]:
            send(writer, 200, [_listed(machine) for machine in self._matching(call)])
        elif parts[1] not in self.sandboxes:
            send(writer, 404, {"code": 404, "message": "sandbox not found"})
        else:
            self._change(call, self.sandboxes[parts[1]], parts[2:])
            send(writer, 204, None)

    def _change(self, call: Call, machine: Machine, what: list[str]) -> None:
        if call.method == "DELETE":
            self.kill(machine.id)
        elif what == ["timeout"]:
            self.timeouts.append(call.json["timeout"])
            self._ends(machine, call.json["timeout"])
        elif what == ["network"]:
            self.networks.append(call.json)
            machine.network = call.json

    async def _create(self, call: Call, writer: asyncio.StreamWriter) -> None:
        if self.refuse:
            send(writer, self.refuse, {"code": self.refuse, "message": "no"})
            return
        self.created.append(call.json)
        if self.hold is not None:
            await self.hold.wait()
        root = Path(tempfile.mkdtemp(prefix="e2b-peer-"))
        for name in ("home", "tmp"):
            (root / name).mkdir()
        if self.index_url:
            place = root / "home" / ".config" / "pip" / "pip.conf"
            place.parent.mkdir(parents=True)
            place.write_text(f"[global]\nindex-url = {self.index_url}\nbreak-system-packages = true\n")
        machine = Machine(uuid4().hex[:20], call.json, root, call.json.get("network") or {})
        self.sandboxes[machine.id] = machine
        self._ends(machine, call.json["timeout"])
        send(writer, 201, _listed(machine) | {"envdAccessToken": "token-of-envd"})

    def _ends(self, machine: Machine, seconds: float) -> None:
        if machine.end:
            machine.end.cancel()
        machine.end = asyncio.get_running_loop().call_later(seconds, self.kill, machine.id)

    def _matching(self, call: Call) -> list[Machine]:
        wanted = parse_qs(unquote(call.query.get("metadata", [""])[0]))
        return [
            machine
            for machine in self.sandboxes.values()
            if all(machine.body["metadata"].get(name) == values[0] for name, values in wanted.items())
        ]

    # --- envd and interpreter

    async def _inside(
        self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        machine = self.sandboxes.get(call.headers["e2b-sandbox-id"])
        if machine is None:
            send(writer, 502, {"message": "The sandbox was not found", "code": 502, "sandboxId": ""})
        elif call.headers.get("x-access-token") != "token-of-envd":
            send(writer, 401, {"message": "unauthorized", "code": 401})
        elif call.path == "/health":
            send(writer, 204, None)
        elif call.path == "/files":
            self._files(call, machine, writer)
        elif call.path == "/process.Process/Start":
            await self._start(call, machine, writer)
        elif call.path == "/execute":
            await self._execute(call, machine, reader, writer)
        else:
            send(writer, 404, {"code": "unimplemented", "message": call.path})

    def _files(self, call: Call, machine: Machine, writer: asyncio.StreamWriter) -> None:
        if call.method == "GET":
            send_bytes(
                writer, 200, machine.path(call.query["path"][0]).read_bytes(), "application/octet-stream"
            )
            return
        written = []
        for name, data in uploads(call):
            path = call.query["path"][0] if "path" in call.query else name
            place = machine.path(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            written.append({"name": place.name, "type": "file", "path": path})
        send(writer, 200, written)

    async def _start(self, call: Call, machine: Machine, writer: asyncio.StreamWriter) -> None:
        wanted = json.loads(call.body[5:])["process"]
        argv = [wanted["cmd"], *wanted.get("args", [])]
        process = await machine.start(argv, envs=wanted.get("envs") or {}, cwd=wanted.get("cwd") or "")
        send_head(writer, 200, "application/connect+json")
        send_event(writer, {"start": {"pid": process.pid}})

        async def pump(name: str, stream: asyncio.StreamReader) -> None:
            while data := await stream.read(65_536):
                send_event(writer, {"data": {name: base64.b64encode(data).decode()}})
                await writer.drain()

        pumps = asyncio.gather(pump("stdout", process.stdout), pump("stderr", process.stderr))
        seconds = int(call.headers.get("connect-timeout-ms", 3_600_000)) / 1000
        try:
            code = await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            machine.stop(process)
            send_chunk(
                writer, envelope(2, {"error": {"code": "deadline_exceeded", "message": "too slow"}})
            )
            writer.write(b"0\r\n\r\n")
            return
        await pumps
        if machine.id not in self.sandboxes:
            writer.transport.abort()
            return
        send_event(writer, {"end": {"exitCode": code, "exited": True, "status": f"exit status {code}"}})
        send_chunk(writer, envelope(2, {}))
        writer.write(b"0\r\n\r\n")

    async def _execute(
        self, call: Call, machine: Machine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        async with machine.kernel_free:
            await self._run_cell(call, machine, reader, writer)

    async def _run_cell(
        self, call: Call, machine: Machine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if machine.kernel is None:
            place = machine.path("/tmp/.kernel.py")
            place.write_text(KERNEL.read_text())
            machine.kernel = await machine.start(
                ["python3", "-u", "/tmp/.kernel.py"], envs={}, pipe_in=True
            )
        kernel = machine.kernel
        assert kernel.stdin is not None
        asked = {"code": call.json["code"], "envs": call.json.get("env_vars") or {}}
        kernel.stdin.write(json.dumps(asked).encode() + b"\n")
        send_head(writer, 200, "application/x-ndjson")
        gone = asyncio.ensure_future(reader.read(1))
        ended = False
        while line := await self._line(kernel, gone):
            if json.loads(line)["type"] == "end":
                ended = True
                break
            if not gone.done():
                send_chunk(writer, line)
                await writer.drain()
        if gone.done() or not ended:
            writer.transport.abort()
            return
        gone.cancel()
        await asyncio.wait([gone])  # until then it reads, and the next call could not be
        writer.write(b"0\r\n\r\n")

    async def _line(self, kernel: asyncio.subprocess.Process, gone: "asyncio.Future[bytes]") -> bytes:
        """The next line; where the client has gone the kernel is interrupted, and goes on to its next job."""
        assert kernel.stdout is not None
        assert kernel.stdin is not None
        reading = asyncio.ensure_future(kernel.stdout.readline())
        if not gone.done():
            await asyncio.wait([reading, gone], return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not reading.done():
                kernel.stdin.write(b'{"interrupt": true}\n')
        return await reading


def _listed(machine: Machine) -> dict[str, Any]:
    return {
        "templateID": machine.body["templateID"],
        "sandboxID": machine.id,
        "clientID": "loopback",
        "envdVersion": "0.5.0",
        "metadata": machine.body.get("metadata") or {},
        "state": "running",
        "cpuCount": 2,
        "memoryMB": 512,
        "diskSizeMB": 1024,
        "startedAt": "2026-01-01T00:00:00Z",
        "endAt": "2026-01-01T01:00:00Z",
    }
