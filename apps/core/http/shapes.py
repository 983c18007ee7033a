"""Shapes of the REST interface: one class for each validates what comes in, dumps what goes out and is what OpenAPI shows."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, cast
from uuid import UUID

from django.utils.dateparse import parse_datetime
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticUseDefault, core_schema

from apps.core.errors import InvalidInput, IzzyError
from apps.core.ids import parse_id
from apps.core.text import NOT_BLANK, clean_text

Row = TypeVar("Row")

OUT_OF_RANGE = "{} is out of range: give a year from 2 to 9998."
WRONG_TYPE = frozenset({"missing", "string_type", "bool_type", "list_type", "dict_type", "model_type"})
"""Problems that pydantic finds and that are answered by `wrong_type`; a value that is wrong is `invalid_input`."""


class Shape(BaseModel):
    """A JSON object that goes out: made from a dict, or from the attributes of a row."""

    model_config = ConfigDict(from_attributes=True, frozen=True, populate_by_name=True)

    openapi: ClassVar[Mapping[str, Any]] = {}  # added to its description: what no field can say

    @classmethod
    def dump(cls, value: object) -> dict[str, Any]:
        """The value's JSON."""
        return cls.model_validate(value).model_dump(mode="json")


class OpenInput(Shape):
    """A body, or a part of one, in which unknown fields are let pass; types are taken strictly."""

    model_config = ConfigDict(
        strict=True, from_attributes=False, allow_inf_nan=False, use_enum_values=True
    )

    @classmethod
    def read(cls, value: object) -> Self:
        """Raises InvalidInput with the field's name in `extra`, and whatever a field's own check raises."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            unknown = [each for each in problems if each["type"] == "extra_forbidden"]
            raise cls._refusal((unknown or problems)[0]) from None

    @classmethod
    def _refusal(cls, problem: ErrorDetails) -> IzzyError:
        if problem["type"] == "refused":
            return cast("IzzyError", problem["ctx"]["error"])
        if not problem["loc"]:
            return InvalidInput("The body must be a JSON object.", code="wrong_type")
        place = problem["loc"][:-1] if isinstance(problem["loc"][-1], int) else problem["loc"]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:50]}" for part in place)[1:]
        if problem["type"] == "extra_forbidden":
            return InvalidInput(f"Unknown field: {field}.", code="unknown_field", field=field)
        code = "wrong_type" if problem["type"] in WRONG_TYPE else ""
        if known := cls.model_fields.get(str(problem["loc"][0])):
            code = next((mark.code for mark in known.metadata if isinstance(mark, Refused)), code)
        return InvalidInput(f"{field}: {problem['msg']}", code=code, field=field)

    @classmethod
    def partial(cls) -> type[Self]:
        """The shape of a change: nothing is required, and only what is given counts."""
        fields: dict[str, Any] = {}
        for name, field in cls.model_fields.items():
            if field.is_required():
                optional = copy(field)
                optional.default = None
                fields[name] = (field.annotation, optional)
        return create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, **fields)

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were sent, by their names."""
        return {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name in self.model_fields_set
        }


class ClosedInput(OpenInput):
    """A body in which unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Query(OpenInput):
    """The parameters of an address: texts that are read as what they stand for."""

    model_config = ConfigDict(strict=False, str_strip_whitespace=True)

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, value: str) -> str:
        if "\x00" in value:
            raise ValueError("NUL characters cannot be stored")
        return value


class Page(Shape, Generic[Row]):
    count: int
    next: str | None = Field(json_schema_extra={"format": "uri"})
    previous: str | None = Field(json_schema_extra={"format": "uri"})
    results: list[Row]


def page_of(name: str, row: type[Shape]) -> type[Shape]:
    """A list's page; it says nothing of its own in OpenAPI."""
    return create_model(name, __base__=Page[row])  # type: ignore[valid-type]


_MISSING = object()


class Beside:
    """Rows of which a shape takes each attribute from the first that has it, after those given by name."""

    def __init__(self, *rows: object, **more: object) -> None:
        self.__dict__.update(more, rows=rows)

    def __getattr__(self, name: str) -> Any:
        for row in self.__dict__["rows"]:
            # Once: what says why a hit was found is put together as it is asked for.
            if (value := getattr(row, name, _MISSING)) is not _MISSING:
                return value
        raise AttributeError(name)


@dataclass(frozen=True, slots=True)
class Refused:
    """The code of whatever is wrong with a field, where it is none of the usual ones."""

    code: str


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A field's own check, called as `check(value, field=name)`, and how OpenAPI shows what it takes."""

    check: Callable[..., Any]
    schema: Any  # a shape or other type, or the description itself

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.with_info_plain_validator_function(self._checked)

    def _checked(self, value: object, info: core_schema.ValidationInfo[Any]) -> Any:
        try:
            return self.check(value, field=info.field_name)
        except IzzyError as error:  # kept for `read`, which answers the first of all
            raise PydanticCustomError("refused", "{error}", {"error": error}) from None


def text(max_chars: int, *, allow_empty: bool = False) -> Checked:
    """Text as `clean_text` takes it."""
    check = partial(clean_text, max_chars=max_chars, allow_empty=allow_empty)
    some = {} if allow_empty else {"minLength": 1, "pattern": NOT_BLANK}
    return Checked(check, {"type": "string", "maxLength": max_chars, **some})


def clean_time(value: object, *, field: str, zone: tzinfo = UTC) -> datetime:
    """An aware time in UTC from a datetime or an ISO 8601 text; a time or date without zone is one of `zone`.

    Not of the calendar's first or last year: in some time zone it would be none.
    """
    try:
        if not isinstance(value, datetime):
            if not isinstance(value, str) or len(value) > 64:
                raise ValueError
            value = parse_datetime(value.strip()) or datetime.fromisoformat(value.strip())
        found = (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)
    except ValueError:
        message = f"{field} must be a time in ISO 8601, such as 2026-05-01T12:00:00Z."
        raise InvalidInput(message, field=field) from None
    except OverflowError:
        raise InvalidInput(OUT_OF_RANGE.format(field), field=field) from None
    if found.year in {MINYEAR, MAXYEAR}:
        raise InvalidInput(OUT_OF_RANGE.format(field), field=field)
    return found


def _time_in_address(value: str, *, field: str) -> datetime:
    """A plus may have become a space on the way."""
    return clean_time(value.strip().replace(" ", "+") if "T" in value else value, field=field)


DATE_TIME = {"type": "string", "format": "date-time"}
Id = Annotated[UUID, Checked(lambda value, field: parse_id(value), {"type": "string", "format": "uuid"})]
"""The id of a row. NotFound for what is none."""
NoteId = Annotated[
    UUID, Checked(lambda value, field: parse_id(value), {"type": "string", "minLength": 1})
]
"""The same, `note-` before it or not."""
Time = Annotated[datetime, Checked(clean_time, DATE_TIME)]
TimeParameter = Annotated[datetime, Checked(_time_in_address, DATE_TIME)]
Moment = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]
"""A time that goes out with `+00:00` rather than `Z`."""
Lax = Field(strict=False)  # of an enum: the value itself is taken, not only its member


def _default_for_null(value: object) -> object:
    if value is None:
        raise PydanticUseDefault
    return value


ABSENT: Any = None  # the default of a field that may be left out but is not null
OrDefault = BeforeValidator(_default_for_null)  # null is the same as absent
