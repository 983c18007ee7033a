"""Which lines of a requirements.txt are accepted, and what is said about the others."""

import pytest

from apps.capabilities.sandbox.requirements import parse_requirements
from apps.core.errors import InvalidInput


def test_names_extras_versions_and_markers_are_accepted_in_one_spelling() -> None:
    text = """\ufeff# a comment
Requests [Socks,security] >= 2.0 , <3   # why
numpy==2.*
zope.interface
discord.py
my_package~=1.4 ; python_version >= "3.9" and sys_platform == 'linux'
numpy == 2.*
"""
    assert parse_requirements(text) == [
        "discord-py",
        'my-package~=1.4 ; python_version >= "3.9" and sys_platform == "linux"',
        "numpy==2.*",
        "requests[security,socks]<3,>=2.0",
        "zope-interface",
    ]


def test_nothing_is_nothing() -> None:
    assert parse_requirements("\n  \n# only a comment\n") == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("https://example.org/a.whl", "addresses"),
        ("git+https://example.org/a", "addresses"),
        ("a @ https://example.org/a.whl", "addresses"),
        ("a@b", "ADDRESS"),
        ("-e .", "options"),
        ("-r other.txt", "options"),
        ("--index-url=x", "options"),
        ("--find-links /tmp", "options"),
        ("./local", "files"),
        ("/etc/passwd", "files"),
        ("..", "files"),
        ("a-1.0-py3-none-any.whl", "files"),
        ("a.tar.gz", "files"),
        ("a==1 --hash=sha256:00", "no requirement"),
        ("a==1 \\", "continued"),
        ("a b", "no requirement"),
        ("$(id)", "no requirement"),
        ("a;`id`", "no requirement"),
        ("a==1;", "no requirement"),
        ("ä", "no requirement"),
        ("a==", "no requirement"),
        ("a===$(id)", "no requirement"),
        ("a ; os_name == 'x\" or os_name != \"y'", "no requirement"),
        ("a ; " + "(" * 290, "no requirement"),
        ("a" + " " * 700 + "x", "300 characters"),
        ("a [" + " " * 280 + "x", "no requirement"),
        ("a\x00b", "no requirement"),
    ],
)
def test_everything_else_is_refused_with_its_line(line: str, word: str) -> None:
    with pytest.raises(InvalidInput) as found:
        parse_requirements(f"six\n{line}\n")
    assert word in found.value.message
    assert "line 2" in found.value.message


@pytest.mark.parametrize("text", ["a\n" * 6000, "a\n" * 51, "\n".join(f"p{n}" for n in range(51))])
def test_size_and_number_have_limits(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_requirements(text)


SECRET = "Kx9_Secret.Value77"


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "six\nkx9-secret-value77",
        "pre-KX9SECRETVALUE77-post==1.0",
        "six=="+SECRET.encode().hex(),
        "kx9-secret\nvalue77",
        "six[Kx9_Secret.Value77]",
        "sk-" + "a1" * 12,
    ],
)  # fmt: skip
def test_no_secret_goes_to_the_index_as_a_package(text: str) -> None:
    with pytest.raises(InvalidInput, match="secret or a key") as found:
        parse_requirements(text, [SECRET])
    assert "ecret.Value" not in found.value.message
    assert parse_requirements("six # " + SECRET, [SECRET, "!!!!!!!!", "six-"]) == ["six"]
