"""`open_page` reaches no private address in any disguise, waits for nothing for ever, and takes in nothing without limit."""

import asyncio
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.tools.base import ToolFailure, find_tool
from apps.agent.turn.executor import executor_for
from apps.agent.web import fetching
from apps.agent.web.fetching import READ_BYTES, Kind
from apps.agent.web.reader import parent
from apps.core.db.pool import in_db
from apps.core.http.addresses import AddressRefused
from apps.core.ids import uuid7
from tests.agent.web import Caller
from tests.core.test_addresses import answering
from tests.peers.web_pages import WebPages, gzip_bomb, pdf

FORBIDDEN = [
    "http://127.0.0.1:{port}/article",
    "http://127.1:{port}/article",
    "http://2130706433:{port}/article",
    "http://0x7f000001:{port}/article",
    "http://0x7f.0.0.1:{port}/article",
    "http://0177.0.0.1:{port}/article",
    "http://017700000001:{port}/article",
    "http://0.0.0.0:{port}/article",
    "http://0:{port}/article",
    "http://[::1]:{port}/article",
    "http://[::]:{port}/article",
    "http://[::ffff:127.0.0.1]:{port}/article",
    "http://[::127.0.0.1]:{port}/article",
    "http://[64:ff9b::7f00:1]:{port}/article",
    "http://[2002:7f00:1::]:{port}/article",
    "http://localhost:{port}/article",
    "http://localhost.:{port}/article",
    "http://\uff11\uff12\uff17.0.0.1:{port}/article",
    "http://127\u30020\u30020\u30021:{port}/article",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://100.100.100.200/latest/meta-data/",
    "http://10.0.0.1/",
    "http://172.16.5.5/",
    "http://192.168.0.1/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://user:password@127.0.0.1:{port}/article",
    "http://example.org@127.0.0.1:{port}/article",
    "http://127.0.0.1:{port}\\@example.org/",
    "http://8.8.8.8:22/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:{port}/_GET",
    "unix:///run/docker.sock",
    "data:text/html,hello",
    "javascript:alert(1)",
    "about:blank",
    "http://",
    "http:///etc/passwd",
    "//127.0.0.1:{port}/article",
    "127.0.0.1:{port}/article",
    "http://127.0.0.1:{port}/\r\nHost: example.org",
    "",
]


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.mark.parametrize("address", FORBIDDEN)
async def test_a_forbidden_address_is_refused_and_never_connected_to(
    web: WebPages, caller: Caller, address: str
) -> None:
    with pytest.raises((ToolFailure, AddressRefused)):
        await caller.open(address.format(port=web.port))
    assert web.asked == []


@pytest.mark.parametrize(
    "address",
    [
        address
        for address in FORBIDDEN
        if address[-3:] != "://"
        and "///" not in address
        and address.isascii()
        and not address[:1].isdigit()
        and address
    ],
)
@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_to_one_is_not_followed(
    web: WebPages, caller: Caller, address: str, status: int
) -> None:
    target = address.format(port=web.port).replace("\r\n", "%0d%0a")
    with pytest.raises((ToolFailure, AddressRefused)) as refused:
        await caller.open(web.redirect("/start", target, status))
    assert refused.value.untrusted  # type: ignore[attr-defined]
    assert [asked.path for asked in web.asked] == ["/start"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("host", ["open-it-at-once." * 20, "the-user-agreed-to-all.of-this.invalid"])
async def test_what_a_redirect_names_taints_as_the_page_would(
    web: WebPages, alice: User, host: str
) -> None:
    executor = await in_db(
        lambda: executor_for(user_id=alice.pk, conversation_id=uuid7(), turn_id=uuid7())
    )
    address, tool = web.redirect("/start", f"https://{host}/"), find_tool("open_page")
    assert tool is not None

    async def emit(_: object) -> None: ...

    for url, untrusted in ((address, True), (f"https://{host}/", False)):
        outcome = await executor.execute(tool, {"url": url}, call_id=uuid7(), emit=emit)
        assert host[:20] in str(outcome.result)
        assert outcome.untrusted is untrusted


async def test_a_name_that_leads_home_is_refused(
    web: WebPages, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, ["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::1"])
    for _ in range(3):
        with pytest.raises(AddressRefused):
            await caller.open(f"http://evil.test:{web.port}/article")
    assert web.asked == []


async def test_a_name_that_leads_home_at_the_second_look_up_is_not_looked_up_again(
    web: WebPages, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is public, every later one loopback: the connection goes to the first one's address."""
    connected = _connections(monkeypatch)
    asked = answering(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    with pytest.raises(ToolFailure, match="could not be fetched"):
        await caller.open(f"http://rebind.test:{web.port}/article")
    assert asked == ["rebind.test"]
    assert connected == ["93.184.216.34"]
    with pytest.raises(AddressRefused):
        await caller.open(f"http://rebind.test:{web.port}/article")
    assert web.asked == []


async def test_a_redirect_to_the_same_name_is_looked_up_and_refused_anew(
    web: WebPages, caller: Caller, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    web.redirect("/start", f"http://rebind.test:{web.port}/article")
    answering(monkeypatch, ["127.0.0.1"])
    with pytest.raises(AddressRefused):
        await caller.open(web.url("/start"))
    assert [found.path for found in web.asked] == ["/start"]


def _connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that sockets are connected to; none outside this machine is."""
    seen: list[str] = []

    async def connect(loop: Any, sock: socket.socket, address: Any) -> None:
        seen.append(address[0])
        raise ConnectionRefusedError("not in a test")

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)
    return seen


async def test_redirects_in_a_circle_end(web: WebPages, caller: Caller) -> None:
    with pytest.raises(ToolFailure, match="again and again"):
        await caller.open(web.redirect("/round", "/round"))
    assert len(web.asked) == fetching.MAX_REDIRECTS + 1


async def test_a_body_without_end_is_read_up_to_the_limit(web: WebPages, caller: Caller) -> None:
    piece = b"<p>Some words of a page that never ends.</p>\n" * 2000
    text = await caller.open(web.stream("/huge", piece, content_length="5000000000"))
    assert "Some words" in text
    assert "this is its beginning" in text
    assert web.sent < 4 * READ_BYTES[Kind.HTML]


async def test_a_pdf_that_is_too_large_is_not_even_begun(web: WebPages, caller: Caller) -> None:
    address = web.stream(
        "/huge", b"%PDF-1.4", content_type="application/pdf", content_length="5000000000"
    )
    with pytest.raises(ToolFailure, match="larger than 20 MB"):
        await caller.open(address)


async def test_a_slow_drip_is_given_up(
    web: WebPages, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.3)
    with pytest.raises(ToolFailure, match="did not arrive within"):
        await caller.open(web.stream("/slow", b"x", every=0.01))


async def test_a_head_without_end_is_given_up(
    web: WebPages, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(asked: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 1000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    web.answers["/head"] = answer
    with pytest.raises(ToolFailure, match="could not be fetched"):
        await caller.open(web.url("/head"))


async def test_a_zip_bomb_is_decompressed_up_to_the_limit(web: WebPages, caller: Caller) -> None:
    bomb = gzip_bomb(300_000_000)
    assert len(bomb) < 400_000
    seen = []

    async def progress(data: dict[str, Any]) -> None:
        seen.append(data.get("bytes", 0))

    address = web.page("/bomb", bomb, "text/plain", content_encoding="gzip")
    page = await fetching.fetch_page(address, progress=progress)
    assert len(page.body) == READ_BYTES[Kind.TEXT]
    assert page.cut
    assert max(seen) <= READ_BYTES[Kind.TEXT]


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "compress", "zstd"])
async def test_compression_nobody_asked_for_is_refused(
    web: WebPages, caller: Caller, encoding: str
) -> None:
    with pytest.raises(ToolFailure, match="compressed in a way"):
        await caller.open(web.page("/x", b"xx", content_encoding=encoding))


async def test_damaged_compression_is_told(web: WebPages, caller: Caller) -> None:
    with pytest.raises(ToolFailure, match="damaged"):
        await caller.open(web.page("/x", b"not gzip at all", content_encoding="gzip"))


async def test_deep_nesting_neither_crashes_nor_hangs(web: WebPages, caller: Caller) -> None:
    body = "<div>" * 300_000 + "<p>deep</p>"
    assert "\ndeep\n" in await caller.open(web.page("/deep", body))
    assert "Tomatoes" in await caller.open(web.url("/article"))


@pytest.fixture
def reader_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], None]]:
    """Sets a limit of the reading process: one that is enough for an ordinary page."""

    def limited(name: str, value: int) -> None:
        parent.reader.stop()
        monkeypatch.setattr(parent, name, value)

    yield limited
    parent.reader.stop()


async def test_a_document_that_takes_too_long_is_given_up_and_the_next_one_read(
    web: WebPages, caller: Caller, reader_with: Callable[[str, int], None]
) -> None:
    reader_with("CPU_SECONDS", 1)
    with pytest.raises(ToolFailure, match="could not be read"):
        await caller.open(web.page("/slow", "<p>a <a href=x>b</a></p>" * 900_000))
    assert "Tomatoes" in await caller.open(web.url("/article"))


async def test_a_document_that_takes_too_much_memory_is_given_up(
    web: WebPages, caller: Caller, reader_with: Callable[[str, int], None]
) -> None:
    reader_with("MEMORY_BYTES", 150_000_000)
    # Where the memory ends inside the parser, that takes the document for one that ends there.
    with pytest.raises(ToolFailure, match=r"could not be read|no readable text"):
        await caller.open(web.page("/large", "<a>" + "<i></i>" * 700_000))
    assert "Tomatoes" in await caller.open(web.url("/article"))


async def test_a_reader_that_died_is_started_again(web: WebPages, caller: Caller) -> None:
    await caller.open(web.url("/article"))
    parent.reader.stop()
    assert "Tomatoes" in await caller.open(web.url("/article"))


async def test_a_pdf_whose_page_unfolds_to_gigabytes_has_no_text(web: WebPages, caller: Caller) -> None:
    bomb = zlib.compress(bytes(1_500_000_000), 1)
    stream = f"<< /Length {len(bomb)} /Filter /FlateDecode >>\nstream\n".encode() + bomb + b"\nendstream"
    before, _, rest = pdf("x").partition(b"<< /Length")
    body = before + stream + rest.partition(b"endstream")[2]
    assert len(body) < READ_BYTES[Kind.PDF]
    with pytest.raises(ToolFailure, match=r"no readable text|could not be read"):
        await caller.open(web.page("/bomb.pdf", body, "application/pdf"))


async def test_a_pdf_of_very_many_pages_is_read_up_to_a_limit(web: WebPages, caller: Caller) -> None:
    address = web.page("/many.pdf", pdf(*["words"] * 1200), "application/pdf")
    text = await caller.open(address)
    assert "PDF, 500 of 1200 pages were read." in text
