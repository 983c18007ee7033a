"""A small websocket client (RFC 6455): text frames, client to server masked, no extensions."""

import asyncio
import base64
import os
import struct
from typing import Self

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


class WebSocket:
    """One connection. `receive` gives the next text message, None when the server has closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, host: str, port: int, path: str, headers: dict[str, str] | None = None) -> Self:
        """Opens a connection; ConnectionError where the server refuses the handshake."""
        reader, writer = await asyncio.open_connection(host, port)
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        if b" 101 " not in status:
            raise ConnectionError(status.decode())
        return cls(reader, writer)

    async def send(self, text: str) -> None:
        self._write(TEXT, text.encode())
        await self._writer.drain()

    async def receive(self) -> str | None:
        message = b""
        while True:
            opcode, final, data = await self._frame()
            if opcode == CLOSE:
                return None
            if opcode == PING:
                self._write(PONG, data)
            elif opcode != PONG:
                message += data
                if final:
                    return message.decode()

    def close(self) -> None:
        self._writer.close()

    async def _frame(self) -> tuple[int, bool, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", await self._reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", await self._reader.readexactly(8))
        return first & 0x0F, bool(first & 0x80), await self._reader.readexactly(length)

    def _write(self, opcode: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | opcode, 0x80 | size)
        elif size < 65536:
            head = struct.pack(">BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, 0x80 | 127, size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self._writer.write(head + mask + masked)
