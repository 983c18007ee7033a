"""Which rows a statement writes, found in its text: its table, and where among its parameters the owner of the rows stands."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.apps import apps

WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")  # the last may lead to one of the others
_TARGET = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?(\w+)"?(?:\s+\(([^)]*)\))?')
_OWNER = re.compile(r'"?user_id"?\)?\s*=\s*\(?(?=%s)')
_PARAMETER = re.compile(r"%s")
REMEMBERED_CHARS = 4_000
"""A longer statement is one of many rows, each time another: it is looked through anew."""


class Written(NamedTuple):
    """`owner` is the number of the parameter that names the rows' user; -1 where the statement does not say it so."""

    table: str
    owner: int


@cache
def owned_tables() -> frozenset[str]:
    """The tables whose rows belong to a user: all of ours but those that say `instance_wide`."""
    return frozenset(
        model._meta.db_table
        for model in apps.get_models()
        if model.__module__.startswith("apps.") and not getattr(model, "instance_wide", False)
    )


def written_by(sql: str) -> Written | None:
    """The users' rows that the statement writes; None for none. A microsecond for one that was seen before."""
    if not sql.startswith(WRITES):
        return None
    return _looked_through(sql) if len(sql) > REMEMBERED_CHARS else _remembered(sql)


def owners_of(written: Written, parameters: Sequence[Any], many: bool) -> set[UUID]:
    """The users that the parameters name as owners of the rows."""
    found: set[UUID] = set()
    for row in parameters if many else [parameters]:
        if 0 <= written.owner < len(row):
            value = row[written.owner]
            values = (
                value if isinstance(value, list) else [value]
            )  # a column of many rows comes as a list
            found.update(each for each in values if isinstance(each, UUID))
    return found


def _looked_through(sql: str) -> Written | None:
    target = _TARGET.search(sql) if sql.startswith("WITH") else _TARGET.match(sql)
    if target is None or target[1] not in owned_tables():
        return None
    if target[0].startswith("INSERT"):
        names = [name.strip(' "') for name in (target[2] or "").split(",")]
        return Written(target[1], _inserted(sql[target.end() :], names))
    owner = _OWNER.search(sql, target.end())
    return Written(target[1], len(_PARAMETER.findall(sql, 0, owner.end())) if owner else -1)


def _inserted(rest: str, names: list[str]) -> int:
    """The parameter of the column `user_id` in the first row after VALUES or UNNEST."""
    if "user_id" not in names:
        return -1
    start = rest.find("(")
    wanted, depth, number, column = names.index("user_id"), 0, 0, 0
    for part in re.finditer(r"[(),]|%s", rest[start:]):
        if part[0] == "%s":
            if column == wanted:
                return number
            number += 1
        elif part[0] == ",":
            column += depth == 1
        else:
            depth += 1 if part[0] == "(" else -1
            if depth == 0:
                break
    return -1


_remembered = lru_cache(maxsize=2_000)(_looked_through)
