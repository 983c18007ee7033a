"""Queries that are asked for each message: Django takes ten times as long to build one, and its SQL, as the database to answer it. A
function that is marked `prepared` is called once, and again where several threads ask at once, with stand-ins for its arguments; later
calls put theirs in the places where these came out in the SQL.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
Made = TypeVar("Made")
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


class _Spare(Generic[Made]):
    """Results of a function that prepares a query, by the kind of database, each for one call at a time: who finds none makes another."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._free: dict[str, list[Made]] = {}

    @contextmanager
    def one(self) -> Iterator[Made]:
        free = self._free.setdefault(connection.vendor, [])
        try:
            made = free.pop()
        except IndexError:
            made = self._make()
        try:
            yield made
        finally:
            free.append(made)


class Prepared(Generic[P, Row]):
    """See the module. `kinds` are the types of the arguments, by default as the function has them."""

    def __init__(
        self, build: Callable[P, "QuerySet[Any, Row]"], kinds: Sequence[type] | None = None
    ) -> None:
        self.__doc__ = build.__doc__
        self._spare = _Spare(lambda: _Select(build, kinds or _kinds_of(build)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[Row]:
        if kwargs:
            raise TypeError("a prepared query takes its arguments in order")
        with self._spare.one() as select:
            return select.rows(args)

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
        self._spare = _Spare(lambda: _Update(build, kinds or _kinds_of(build)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> int:
        if kwargs:
            raise TypeError("a prepared update takes its arguments in order")
        with self._spare.one() as update, connection.cursor() as cursor:
            cursor.execute(*update.statement(args))
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
    """A statement's SQL, and what stands in its places."""

    def __init__(self, name: str, compiler: SQLCompiler, stand_ins: Sequence[Any]) -> None:
        self._sql, given = compiler.as_sql()
        own = list(map(_adapted, stand_ins))
        # For each place the number of the argument that stands there, or the value that always does.
        self._places = [(own.index(value), None) if value in own else (-1, value) for value in given]
        if missing := set(range(len(own))) - {number for number, _ in self._places}:
            raise ValueError(f"{name}: arguments {sorted(missing)} are not in its query")

    def statement(self, given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        """The SQL and its parameters, with these arguments."""
        return self._sql, tuple(
            _adapted(given[number]) if number >= 0 else value for number, value in self._places
        )


class _Select(_Statement):
    """Its compiler was asked for the SQL before; it asks whichever connection the thread has that calls."""

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], kinds: Sequence[type]) -> None:
        stand_ins = [_KINDS[kind]() for kind in kinds]
        self._query: Any = build(*stand_ins)
        compiler: Any = self._query.query.get_compiler(DEFAULT_DB_ALIAS)
        super().__init__(build.__qualname__, compiler, stand_ins)
        converters = compiler.get_converters([each[0] for each in compiler.select[: compiler.col_count]])
        self._asked: list[Any] = []  # the SQL and its parameters, of this call
        compiler.as_sql, compiler.get_converters = _always(self._asked), _always(converters)
        self._compiler = compiler
        query: Any = self._query.query
        query.get_compiler = _always(compiler)

    def rows(self, given: Sequence[Any]) -> list[Any]:
        self._asked[:] = self.statement(given)
        self._compiler.connection = connections[DEFAULT_DB_ALIAS]
        try:
            return list(self._query._iterable_class(self._query))
        finally:
            self._compiler.connection = None  # the thread may end, and its connection with it


class _Update(_Statement):
    def __init__(self, build: Callable[..., Any], kinds: Sequence[type]) -> None:
        stand_ins = [_KINDS[kind]() for kind in kinds]
        rows, values = build(*stand_ins)
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(values)
        query.annotations = {}
        super().__init__(build.__qualname__, query.get_compiler(DEFAULT_DB_ALIAS), stand_ins)


def _always(value: Any) -> Callable[..., Any]:
    """A function that gives this, whatever it is called with."""
    return lambda *args, **kwargs: value


def _adapted(value: Any) -> Any:
    if isinstance(value, UUID) and not connection.features.has_native_uuid_field:
        return value.hex
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, list) and connection.vendor != "postgresql":
        return json.dumps([_adapted(each) for each in value])
    return value
