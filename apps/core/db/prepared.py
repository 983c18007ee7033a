"""Queries that are asked for each message: Django takes ten times as long to build one, and its SQL, as the database to answer it. A
function that is marked `prepared` is called once for each connection, with stand-ins for its arguments; later calls put theirs
in the places where these came out in the SQL.

    @prepared
    def _turns_of(conversation_id: UUID) -> QuerySet[Turn]:
        return Turn.objects.unscoped().filter(conversation_id=conversation_id)

    _turns_of(conversation_id)  # a list of rows, as iterating the query gives them

A function that is marked `prepared_update` gives the query and the values to set; a call returns how many rows were found.

So an argument may only be handed to a filter as it is, and must be needed there (else ValueError); nothing that differs from call
to call may stand in the function itself: no `timezone.now()` but `Now()`, no slice by an argument, and `pk__among=ids` for a
`list[UUID]`, not `pk__in=ids`, which has a place for each.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Lookup, QuerySet, UUIDField
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.subqueries import UpdateQuery

P = ParamSpec("P")
Row = TypeVar("Row")
_KINDS: dict[Any, Callable[[], Any]] = {
    UUID: uuid4,
    str: lambda: f"stand-in {uuid4()}",
    int: lambda: (
        uuid4().int >> 98
    ),  # as fits into every column: Django knows that a larger one finds nothing
    datetime: lambda: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=uuid4().int >> 80),
    list[UUID]: lambda: [uuid4()],
}


@UUIDField.register_lookup
class Among(Lookup):
    """`pk__among=ids`: rows with one of these ids; a single argument, however many there are."""

    lookup_name = "among"
    prepare_rhs = False

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[Any, ...]]:
        column, params = self.process_lhs(compiler, connection)
        among = (
            "= ANY(%s)" if connection.vendor == "postgresql" else "IN (SELECT value FROM json_each(%s))"
        )
        return f"{column} {among}", (*params, _adapted(list(self.rhs)))


class Prepared(Generic[P, Row]):
    """See the module. `kinds` are the types of the arguments, by default as the function has them."""

    def __init__(
        self, build: Callable[P, "QuerySet[Any, Row]"], kinds: Sequence[type] | None = None
    ) -> None:
        self.__doc__ = build.__doc__
        self._build = build
        self._kinds = kinds or _kinds_of(build)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[Row]:
        if kwargs:
            raise TypeError("a prepared query takes its arguments in order")
        known = vars(connections[DEFAULT_DB_ALIAS]).setdefault("prepared", {})
        if (select := known.get(self)) is None:
            select = known[self] = _Select(self._build, self._kinds)
        select.arguments = args
        return list(select.query._iterable_class(select.query))

    def first(self, *args: P.args, **kwargs: P.kwargs) -> Row | None:
        """The first row, None where there is none."""
        return next(iter(self(*args, **kwargs)), None)


class PreparedUpdate(Generic[P]):
    """The same of an update."""

    def __init__(
        self,
        build: Callable[P, "tuple[QuerySet[Any, Any], dict[str, Any]]"],
        kinds: Sequence[type] | None = None,
    ) -> None:
        self.__doc__ = build.__doc__
        self._build = build
        self._kinds = kinds or _kinds_of(build)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> int:
        if kwargs:
            raise TypeError("a prepared update takes its arguments in order")
        known = vars(connections[DEFAULT_DB_ALIAS]).setdefault("prepared", {})
        if (update := known.get(self)) is None:
            update = known[self] = _Update(self._build, self._kinds)
        update.arguments = args
        with connection.cursor() as cursor:
            cursor.execute(*update.as_sql())
            return int(cursor.rowcount)


def prepared(build: Callable[P, "QuerySet[Any, Row]"]) -> Prepared[P, Row]:
    """Marks a function that gives a query."""
    return Prepared(build)


def prepared_update(
    build: Callable[P, "tuple[QuerySet[Any, Any], dict[str, Any]]"],
) -> PreparedUpdate[P]:
    """Marks a function that gives a query and the values to set."""
    return PreparedUpdate(build)


def _kinds_of(build: Callable[..., Any]) -> list[type]:
    return [each.annotation for each in inspect.signature(build, eval_str=True).parameters.values()]


class _Statement:
    """A statement's SQL on one thread's connection, and what stands in its places; `arguments` are those of the call that runs."""

    def __init__(self, name: str, compiler: SQLCompiler, stand_ins: Sequence[Any]) -> None:
        self.arguments: Sequence[Any] = stand_ins
        self._sql, given = compiler.as_sql()
        own = list(map(_adapted, stand_ins))
        # For each place the number of the argument that stands there, or the value that always does.
        self._places = [(own.index(value), None) if value in own else (-1, value) for value in given]
        if missing := set(range(len(own))) - {number for number, _ in self._places}:
            raise ValueError(f"{name}: arguments {sorted(missing)} are not in its query")

    def as_sql(self, *args: Any, **kwargs: Any) -> tuple[str, tuple[Any, ...]]:
        """The compiler's `as_sql`, which has been asked before."""
        given = self.arguments
        return self._sql, tuple(
            _adapted(given[number]) if number >= 0 else value for number, value in self._places
        )


class _Select(_Statement):
    def __init__(self, build: Callable[..., QuerySet[Any, Any]], kinds: Sequence[type]) -> None:
        stand_ins = [_KINDS[kind]() for kind in kinds]
        self.query: Any = build(*stand_ins)
        compiler: Any = self.query.query.get_compiler(DEFAULT_DB_ALIAS)
        super().__init__(build.__qualname__, compiler, stand_ins)
        converters = compiler.get_converters([each[0] for each in compiler.select[: compiler.col_count]])
        compiler.get_converters = lambda expressions: converters
        compiler.as_sql = self.as_sql
        query: Any = self.query.query
        query.get_compiler = lambda *args, **kwargs: compiler


class _Update(_Statement):
    def __init__(self, build: Callable[..., Any], kinds: Sequence[type]) -> None:
        stand_ins = [_KINDS[kind]() for kind in kinds]
        rows, values = build(*stand_ins)
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(values)
        query.annotations = {}
        super().__init__(build.__qualname__, query.get_compiler(DEFAULT_DB_ALIAS), stand_ins)


def _adapted(value: Any) -> Any:
    if isinstance(value, UUID) and not connection.features.has_native_uuid_field:
        return value.hex
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, list) and connection.vendor != "postgresql":
        return json.dumps([_adapted(each) for each in value])
    return value
