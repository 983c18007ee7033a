"""A loopback E2B: control plane, envd and interpreter on one port, as the real SDK speaks to them.

    async with E2BServer() as e2b:
        monkeypatch.setenv("E2B_API_URL", e2b.url); monkeypatch.setenv("E2B_SANDBOX_URL", e2b.url)

Sandboxes really run what they are given: in bubblewrap on this machine, with a home directory of their own, without network
unless something is allowed. It is no security boundary. `sandboxes` are those alive, `created` the bodies of the requests
that made them, `networks` later changes of their network.
"""

import asyncio
import base64
import contextlib
import json
import shutil
import struct
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

KERNEL = Path(__file__).with_name("e2b_kernel.py")
CODES = {"SIGNAL_SIGKILL": 9, "SIGNAL_SIGTERM": 15}


@dataclass
class Machine:
    """One sandbox."""

    id: str
    body: dict[str, Any]
    root: Path
    network: dict[str, Any]
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    kernel: asyncio.subprocess.Process | None = None
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
        env = {"PATH": f"{base}:/usr/local/bin:/usr/bin:/bin", "HOME": "/home/user", "LANG": "C.UTF-8"} | envs
        network = [] if self.network.get("allowOut") else ["--unshare-net"]
        wrapped = [
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/home"),
            *("--bind", str(self.root / "home"), "/home/user", "--bind", str(self.root / "tmp"), "/tmp"),
            *("--unshare-pid", "--die-with-parent", "--new-session", "--clearenv", *network),
            *(part for name, value in env.items() for part in ("--setenv", name, value)),
            *("--chdir", cwd or "/home/user", *argv),
        ]
        process = await asyncio.create_subprocess_exec(
            *wrapped,
            stdin=asyncio.subprocess.PIPE if pipe_in else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**26,
        )
        self.processes.append(process)
        return process

    def kill(self) -> None:
        """Everything in it ends, and its files go."""
        if self.end:
            self.end.cancel()
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.body or b"{}")
        return loaded


@dataclass
class E2BServer:
    """See the module's docstring. `refuse` is a status with which the next sandboxes are refused."""

    api_key: str = "e2b_0123456789abcdef"
    port: int = 0
    refuse: int = 0
    sandboxes: dict[str, Machine] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    networks: list[dict[str, Any]] = field(default_factory=list)
    timeouts: list[int] = field(default_factory=list)
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

    def kill(self, sandbox_id: str) -> bool:
        """Ends a sandbox, as its time limit does."""
        machine = self.sandboxes.pop(sandbox_id, None)
        if machine is not None:
            machine.kill()
        return machine is not None

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while (call := await _read(reader)) is not None:
                await self._answer(call, reader, writer)
        writer.close()

    async def _answer(self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if "e2b-sandbox-id" in call.headers:
            await self._inside(call, reader, writer)
        elif call.headers.get("x-api-key") != self.api_key:
            _send(writer, 401, {"code": 401, "message": "Invalid API key"})
        else:
            await self._control(call, writer)
        await writer.drain()

    # --- Control plane

    async def _control(self, call: Call, writer: asyncio.StreamWriter) -> None:
        parts = call.path.strip("/").removeprefix("v2/").split("/")
        if parts == ["sandboxes"] and call.method == "POST":
            await self._create(call, writer)
        elif parts == ["sandboxes"]:
            _send(writer, 200, [_listed(machine) for machine in self._matching(call)])
        elif parts[1] not in self.sandboxes:
            _send(writer, 404, {"code": 404, "message": "sandbox not found"})
        else:
            self._change(call, self.sandboxes[parts[1]], parts[2:])
            _send(writer, 204, None)

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
            _send(writer, self.refuse, {"code": self.refuse, "message": "no"})
            return
        self.created.append(call.json)
        if self.hold is not None:
            await self.hold.wait()
        root = Path(tempfile.mkdtemp(prefix="e2b-peer-"))
        for name in ("home", "tmp"):
            (root / name).mkdir()
        machine = Machine(uuid4().hex[:20], call.json, root, call.json.get("network") or {})
        self.sandboxes[machine.id] = machine
        self._ends(machine, call.json["timeout"])
        _send(writer, 201, _listed(machine) | {"envdAccessToken": "token-of-envd"})

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

    async def _inside(self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        machine = self.sandboxes.get(call.headers["e2b-sandbox-id"])
        if machine is None:
            _send(writer, 502, {"message": "The sandbox was not found", "code": 502, "sandboxId": ""})
        elif call.headers.get("x-access-token") != "token-of-envd":
            _send(writer, 401, {"message": "unauthorized", "code": 401})
        elif call.path == "/health":
            _send(writer, 204, None)
        elif call.path == "/files":
            self._files(call, machine, writer)
        elif call.path == "/process.Process/Start":
            await self._start(call, machine, writer)
        elif call.path == "/execute":
            await self._execute(call, machine, reader, writer)
        else:
            _send(writer, 404, {"code": "unimplemented", "message": call.path})

    def _files(self, call: Call, machine: Machine, writer: asyncio.StreamWriter) -> None:
        if call.method == "GET":
            _send_bytes(
                writer, 200, machine.path(call.query["path"][0]).read_bytes(), "application/octet-stream"
            )
            return
        written = []
        for name, data in _parts(call):
            path = call.query["path"][0] if "path" in call.query else name
            place = machine.path(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            written.append({"name": place.name, "type": "file", "path": path})
        _send(writer, 200, written)

    async def _start(self, call: Call, machine: Machine, writer: asyncio.StreamWriter) -> None:
        wanted = json.loads(call.body[5:])["process"]
        argv = [wanted["cmd"], *wanted.get("args", [])]
        process = await machine.start(argv, envs=wanted.get("envs") or {}, cwd=wanted.get("cwd") or "")
        _head(writer, 200, "application/connect+json")
        _event(writer, {"start": {"pid": process.pid}})

        async def pump(name: str, stream: asyncio.StreamReader) -> None:
            while data := await stream.read(65_536):
                _event(writer, {"data": {name: base64.b64encode(data).decode()}})
                await writer.drain()

        pumps = asyncio.gather(pump("stdout", process.stdout), pump("stderr", process.stderr))
        code = await process.wait()
        await pumps
        if machine.id not in self.sandboxes:
            writer.transport.abort()
            return
        _event(writer, {"end": {"exitCode": code, "exited": True, "status": f"exit status {code}"}})
        _chunk(writer, _envelope(2, {}))
        writer.write(b"0\r\n\r\n")

    async def _execute(
        self, call: Call, machine: Machine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if machine.kernel is None:
            place = machine.path("/tmp/.kernel.py")
            place.write_text(KERNEL.read_text())
            machine.kernel = await machine.start(["python3", "-u", "/tmp/.kernel.py"], envs={}, pipe_in=True)
        kernel = machine.kernel
        asked = {"code": call.json["code"], "envs": call.json.get("env_vars") or {}}
        kernel.stdin.write(json.dumps(asked).encode() + b"\n")
        _head(writer, 200, "application/x-ndjson")
        gone = asyncio.ensure_future(reader.read(1))
        ended = False
        while line := await self._line(kernel, gone):
            if json.loads(line)["type"] == "end":
                ended = True
                break
            if not gone.done():
                _chunk(writer, line)
                await writer.drain()
        if gone.done() or not ended:
            writer.transport.abort()
            return
        gone.cancel()
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


async def _read(reader: asyncio.StreamReader) -> Call | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([piece async for piece in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Call(method, parts.path, parse_qs(parts.query), headers, body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()


def _parts(call: Call) -> list[tuple[str, bytes]]:
    """The files of an upload: `(file name, content)`."""
    kind, _, boundary = call.headers.get("content-type", "").partition("boundary=")
    if "multipart" not in kind:
        return [("", call.body)]
    found = []
    for part in call.body.split(b"--" + boundary.strip('"').encode())[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        name = head.decode().partition('filename="')[2].partition('"')[0]
        found.append((unquote(name), data.removesuffix(b"\r\n")))
    return found


def _envelope(flags: int, message: Any) -> bytes:
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def _event(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    _chunk(writer, _envelope(0, {"event": event}))


def _head(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    writer.write(
        f"HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _send(writer: asyncio.StreamWriter, status: int, body: Any) -> None:
    _send_bytes(writer, status, b"" if body is None else json.dumps(body).encode(), "application/json")


def _send_bytes(writer: asyncio.StreamWriter, status: int, body: bytes, kind: str) -> None:
    length = "" if status == 204 else f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"HTTP/1.1 {status} -\r\n{length}\r\n".encode() + body)
