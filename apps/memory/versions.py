"""Versions of a note or file, each beside what differs from the one before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from .review.diffs import Piece, text_diff


class Version(Protocol):
    @property
    def content(self) -> str: ...


V = TypeVar("V", bound=Version)


@dataclass(frozen=True, slots=True)
class Step(Generic[V]):
    """A version, and how its text came from that of the version before; empty for the first and where none differs."""

    version: V
    diff: tuple[Piece, ...] = ()


def steps_of(versions: Sequence[V]) -> list[Step[V]]:
    """The versions, newest first as they are given, as steps."""
    steps = []
    for place, version in enumerate(versions):
        former = versions[place + 1].content if place + 1 < len(versions) else version.content
        differs = former != version.content
        steps.append(Step(version, tuple(text_diff(former, version.content)) if differs else ()))
    return steps
