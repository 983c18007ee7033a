"""Small changes to a JSON text that leave everything else as it was: comments, order, indentation, line ends."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"[^\s,:\[\]{}\"/]+")
_INDENT = re.compile(r"\n([ \t]+)\S")
MAX_DEPTH = 200

Path = Sequence[str | int]


class NotJson(ValueError):
    """The text is not JSON (with comments); the message says in which line."""


@dataclass(eq=False)
class Node:
    """A value and where it stands: `[start, end)` of the text. A member of an object has a `key`, which stands at `begin`."""

    start: int
    end: int
    value: Any = None  # of what is neither an object nor a list
    sign: str = ""  # { of an object, [ of a list
    children: "list[Node]" = field(default_factory=list)
    key: str = ""
    begin: int = -1

    def __post_init__(self) -> None:
        self.begin = self.start

    def plain(self) -> Any:
        """The value as Python has it; of keys that come twice the last counts, as for every reader."""
        if self.sign == "{":
            return {child.key: child.plain() for child in self.children}
        return [child.plain() for child in self.children] if self.sign else self.value

    def child(self, step: str | int) -> "Node | None":
        if isinstance(step, int):
            return self.children[step] if self.sign == "[" and step < len(self.children) else None
        named = [child for child in self.children if self.sign == "{" and child.key == step]
        return named[-1] if named else None


@dataclass
class JsonText:
    """A JSON text that can be changed. An empty one is the empty object. Raises NotJson."""

    text: str
    root: Node = field(init=False)

    def __post_init__(self) -> None:
        self._read(self.text if self.text.strip("\ufeff \t\r\n") else "{}\n")

    def plain(self) -> Any:
        return self.root.plain()

    def node(self, path: Path) -> Node | None:
        node: Node | None = self.root
        for step in path:
            node = node.child(step) if node is not None else None
        return node

    def add(self, path: Path, value: object) -> None:
        """Appends to the list at `path`, or sets the member that its last step names; objects on the way are made."""
        *above, last = path
        place = self.node(above)
        if place is None:
            self.add(above, {})
            place = self.node(above)
        if place is not None and place.sign == "{" and isinstance(last, str):
            known = place.child(last)
            if known is not None and known.sign == "[" and not isinstance(value, list):
                self._insert(known, "", value)
            elif known is not None:
                self._replace(known, value)
            else:
                self._insert(place, f"{json.dumps(last, ensure_ascii=False)}: ", value)

    def remove(self, path: Path) -> None:
        """Takes out a member or an item, with its comma."""
        place, gone = self.node(path[:-1]), self.node(path)
        if place is None or gone is None:
            return
        at, begin, end = place.children.index(gone), self._line_start(gone.begin), gone.end
        comma = self._comma_after(end)
        if comma is not None:
            end = comma + 1
        elif at > 0:
            before = self._comma_after(place.children[at - 1].end)
            if before is not None:
                self.text = self.text[:before] + self.text[before + 1 :]
                begin, end = begin - 1, end - 1
        text = self.text[:begin] + self.text[end:]
        if len(place.children) == 1:
            text = self._collapsed(text, place.start)
        self._read(text)

    def _collapsed(self, text: str, start: int) -> str:
        """A list or object in which nothing is left, without the white space in it."""
        after = start + 1
        while after < len(text) and text[after] in " \t\r\n":
            after += 1
        return text[: start + 1] + text[after:] if text[after] in "]}" else text

    def _line_start(self, place: int) -> int:
        """The end of the line before, if only white space stands between."""
        begin = place
        while begin > 0 and self.text[begin - 1] in " \t":
            begin -= 1
        if begin > 0 and self.text[begin - 1] == "\n":
            return begin - 2 if self.text[begin - 2 : begin - 1] == "\r" else begin - 1
        return place if begin == 0 or self.text[begin - 1] not in ",[{" else begin

    def _insert(self, place: Node, name: str, value: object) -> None:
        children, text, close = place.children, self.text, place.end - 1
        own = self._indent_at(place.start)
        if not children:
            inside = text[place.start + 1 : close].rstrip()
            more = f"{self._line}{own}{self._unit}{name}{self._rendered(value, own + self._unit)}{self._line}{own}"
            self._read(text[: place.start + 1] + inside + more + text[close:])
            return
        last = children[-1].end
        comma = self._comma_after(last)
        if "\n" not in text[last:close]:
            end = len(text[:close].rstrip())
            sign = " " if comma is not None else ", "
            self._read(f"{text[:end]}{sign}{name}{json.dumps(value, ensure_ascii=False)}{text[end:]}")
            return
        indent = self._indent_at(children[-1].begin)
        end = len(text[:close].rstrip())
        new = f"{self._line}{indent}{name}{self._rendered(value, indent)}{',' if comma is not None else ''}"
        between = text[last:end] if comma is not None else f",{text[last:end]}"
        self._read(text[:last] + between + new + text[end:])

    def _replace(self, node: Node, value: object) -> None:
        rendered = self._rendered(value, self._indent_at(node.start))
        self._read(self.text[: node.start] + rendered + self.text[node.end :])

    def _rendered(self, value: object, indent: str) -> str:
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return f"{self._line}{indent}".join(lines)

    @property
    def _line(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def _unit(self) -> str:
        found = _INDENT.search(self.text)
        return found[1] if found else "  "

    def _indent_at(self, place: int) -> str:
        line = self.text[self.text.rfind("\n", 0, place) + 1 : place]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _comma_after(self, place: int) -> int | None:
        after = self._blank(place)
        return after if self.text[after : after + 1] == "," else None

    def _blank(self, place: int) -> int:
        found = _BLANK.match(self.text, place)
        return found.end() if found else place

    def _read(self, text: str) -> None:
        self.text = text
        start = self._blank(1 if text.startswith("\ufeff") else 0)
        self.root = self._value(start, 0)
        rest = self._blank(self.root.end)
        if rest != len(text):
            raise self._wrong(rest)

    def _wrong(self, place: int) -> NotJson:
        line = self.text.count("\n", 0, place) + 1
        return NotJson(f"line {line} is not valid JSON")

    def _value(self, start: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._wrong(start)
        sign = self.text[start : start + 1]
        if sign in ("{", "["):
            return self._nested(start, depth + 1, sign)
        found = (_STRING if sign == '"' else _PLAIN).match(self.text, start)
        if found is None:
            raise self._wrong(start)
        try:
            return Node(start, found.end(), json.loads(found[0]))
        except ValueError:
            raise self._wrong(start) from None

    def _nested(self, start: int, depth: int, sign: str) -> Node:
        """An object or a list."""
        node, close = Node(start, start, sign=sign), "}" if sign == "{" else "]"
        place = self._blank(start + 1)
        while self.text[place : place + 1] != close:
            child = self._member(place, depth) if sign == "{" else self._value(place, depth)
            node.children.append(child)
            place = self._next(child.end, close)
        node.end = place + 1
        return node

    def _member(self, place: int, depth: int) -> Node:
        key = _STRING.match(self.text, place)
        colon = self._blank(key.end()) if key else place
        if key is None or self.text[colon : colon + 1] != ":":
            raise self._wrong(place)
        node = self._value(self._blank(colon + 1), depth)
        node.key, node.begin = json.loads(key[0]), place
        return node

    def _next(self, end: int, close: str) -> int:
        """Where the next child begins, or the end."""
        place = self._blank(end)
        if self.text[place : place + 1] == ",":
            return self._blank(place + 1)
        if self.text[place : place + 1] != close:
            raise self._wrong(place)
        return place
