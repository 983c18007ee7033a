"""Connections go to the public internet alone, in one spelling, at the address that was checked."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from apps.core.health import malformed_private_hosts
from apps.core.http.addresses import (
    AddressRefused,
    NameNotFound,
    PrivateHost,
    canonical_host,
    is_public,
    private_hosts,
    resolve_public,
)

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "172.32.0.1",
    "2606:4700::1111",
    "2a00::1",
]

NO_NAMES = [
    "",
    ".",
    "..",
    "example..com",
    "example.com..",
    ".example.com",
    "-example.com",
    "exa mple.com",
    "example.com\n",
    "example.com\x00",
    "example.com\x00.evil.test",
    "user@example.com",
    "user:pass@127.0.0.1",
    "example.com/path",
    "example.com\\path",
    "example.com?x",
    "example.com#x",
    "example.com:80",
    "%31%32%37.0.0.1",
    "[::1",
    "::1]",
    "[[::1]]",
    "[127.0.0.1]",
    "[example.com]",
    "fe80::1%eth0",
    "2606:4700::1%25eth0",
    "1:2:3",
    "a" * 64 + ".com",
    "a." * 130 + "com",
    "xn--\u00e9.com",
    "\u200b",
    "\ud800.com",
]
NUMBERS = [
    "2130706433",
    "0x7f000001",
    "0x7F.1",
    "0x7f.0x0.0x0.0x1",
    "017700000001",
    "0177.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.0.0.01",
    "127.0.0.256",
    "1.2.3.4.5",
    "0",
    "0x",
    "example.com.1",
    "example.com.0x1",
    "\uff11\uff12\uff17.0.0.1",  # full-width digits
    "①②⑦.⓪.⓪.①",
    "127\u3002 0.0.1".replace(" ", ""),  # an ideographic full stop
    "127\uff0e0\uff0e0\uff0e1",
    "①②⑦.1",
]


def answering(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """DNS as an attacker runs it: each look-up gets the next of `answers`. Returns the names that were asked for."""
    asked: list[str] = []
    left = list(answers)

    def getaddrinfo(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        asked.append(host)
        found = left.pop(0)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port),
            )
            for address in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def resolved(host: str, port: int = 80, **options: Any) -> list[str]:
    return [found.address for found in asyncio.run(resolve_public(host, port, **options))]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(AddressRefused):
        resolved(address)
    if ":" in address:
        with pytest.raises(AddressRefused):
            resolved(f"[{address}]")


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_a_name_that_leads_to_such_an_address_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, ["93.184.216.34", address], [address])
    for _ in range(2):
        with pytest.raises(AddressRefused, match=r"evil\.test leads to"):
            resolved("evil.test")


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_itself(address: str) -> None:
    assert resolved(address) == [address]


@pytest.mark.parametrize("host", [*NO_NAMES, *NUMBERS])
def test_no_name_and_numbers_that_some_resolver_takes_for_an_address_are_refused_before_anybody_is_asked(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch)
    with pytest.raises(AddressRefused):
        resolved(host)
    assert asked == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "router", "\u24dbocalhost"])
def test_names_of_a_local_network_are_refused_wherever_they_lead(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, ["93.184.216.34"])
    with pytest.raises(AddressRefused):
        resolved(host)


def test_localhost_as_this_machine_resolves_it_is_refused() -> None:
    with pytest.raises(AddressRefused):
        resolved("localhost")


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("\uff45xample.com", "example.com"),
        ("_dmarc.my_host.example", "_dmarc.my_host.example"),
        ("[2606:4700:0::1111]", "2606:4700::1111"),
        ("1e100.net", "1e100.net"),
        ("0x7f.example", "0x7f.example"),
    ],
)
def test_every_host_has_one_spelling(given: str, canonical: str) -> None:
    assert canonical_host(given) == canonical


def test_the_name_is_asked_for_once_and_its_address_is_what_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = answering(monkeypatch, ["93.184.216.34", "93.184.216.34", "2606:4700::1111"], ["127.0.0.1"])
    assert resolved("Rebind.Test.") == ["93.184.216.34", "2606:4700::1111"]
    assert asked == ["rebind.test"]
    with pytest.raises(AddressRefused):
        resolved("rebind.test")


def test_a_name_nobody_knows_is_told_from_one_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, [])
    with pytest.raises(NameNotFound, match=r"no host called nowhere\.test"):
        resolved("nowhere.test")


def test_a_resolver_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, release: Callable[[], Any]
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: release())
    monkeypatch.setattr("apps.core.http.addresses.RESOLVE_SECONDS", 0.05)
    with pytest.raises(NameNotFound, match="Nobody says"):
        resolved("slow.test")


@pytest.fixture
def release() -> Any:
    """A call that does not return before the test is over."""
    import threading

    over = threading.Event()
    yield over.wait
    over.set()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(AddressRefused):
        resolved("8.8.8.8", port)


def test_a_private_host_is_reached_on_its_port_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_PRIVATE_HOSTS = [
        "nas.home:5000",
        "192.168.1.7",
        "api.test:8080=127.0.0.1",
        "[fd00::5]:80=fd00::6",
    ]
    answering(monkeypatch, ["192.168.1.5"], ["192.168.1.5"])
    assert resolved("NAS.home.", 5000) == ["192.168.1.5"]
    assert resolved("192.168.1.7", 443) == ["192.168.1.7"]
    assert resolved("api.test", 8080) == ["127.0.0.1"]
    assert resolved("[fd00::5]", 80) == ["fd00::6"]
    with pytest.raises(AddressRefused):
        resolved("nas.home", 22)
    for host, port in [("192.168.1.8", 443), ("[fd00::5]", 81), ("127.0.0.1", 8080)]:
        with pytest.raises(AddressRefused):
            resolved(host, port)


def test_a_host_may_be_allowed_for_one_call() -> None:
    assert resolved("127.0.0.1", 8080, also=[PrivateHost("127.0.0.1", 8080)]) == ["127.0.0.1"]
    with pytest.raises(AddressRefused):
        resolved("127.0.0.1", 8081, also=[PrivateHost("127.0.0.1", 8080)])


@pytest.mark.parametrize(
    "entry", ["", "a b", "host:", "host:x", "host:99999", "host=name", "host=1.2.3.4=5.6.7.8", "@"]
)
def test_a_malformed_entry_is_told_at_the_start(entry: str, settings: Settings) -> None:
    with pytest.raises(AddressRefused):
        private_hosts([entry])
    settings.IZZY_PRIVATE_HOSTS = [entry]
    (found,) = malformed_private_hosts(None)
    assert "IZZY_PRIVATE_HOSTS" in found.msg
