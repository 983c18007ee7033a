"""The base of all forms of pages. Services decide what is accepted; a form asks for it, and says what was refused."""

import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django import forms

from apps.core.errors import IzzyError
from apps.core.text import plain_breaks


class PlainForm(forms.Form):
    """A form whose inputs carry the design system's classes. `field_of` names the field for a refusal's, where they differ;
    `checks` has what a service asks of single fields, so that all that is wrong is shown at once, each beside its field."""

    field_of: ClassVar[dict[str, str]] = {}
    made: Any = None  # the result of the work that was accepted
    checks: ClassVar[dict[str, Callable[[Any], object]]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
                field.widget.attrs.setdefault("class", "input")
            if isinstance(field.widget, forms.Textarea):
                # A browser would cut off what is pasted beyond it, and say nothing.
                field.widget.attrs.pop("maxlength", None)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        for name, check in self.checks.items():
            if name in given:
                self.check(name, check, given[name])
        return given

    def add_error(self, field: str | None, error: Any) -> None:
        super().add_error(field, error)
        wrong = [name for name in self.fields if name in self.errors]
        for name, each in self.fields.items() if wrong else ():
            each.widget.attrs["autofocus"] = (
                name == wrong[0]
            )  # the cursor where something is to be put right

    def as_shown(self, name: str) -> bool:
        """Whether a field with a hidden initial came back as it was shown: it may have been changed elsewhere meanwhile."""
        return self.add_initial_prefix(name) in self.data and name not in self.changed_data

    def check(self, name: str, check: Callable[..., object], *values: Any) -> None:
        """Show at a field what a service would refuse of it."""
        try:
            check(*values)
        except IzzyError as error:
            self.add_error(name, error.message)

    def accepted(
        self, work: Callable[[], object], refusals: tuple[type[IzzyError], ...] = (IzzyError,)
    ) -> bool:
        """Whether the form holds what it may, and a service does the `work`, whose result is `made`; what it refuses is shown."""
        if not self.is_valid():
            return False
        try:
            self.made = work()
        except refusals as error:
            self.add_failure(error)
        return not self.errors

    def add_failure(self, error: IzzyError) -> None:
        """Show a service's refusal at the field it names, else above the form."""
        named = str(error.extra.get("field", ""))
        field = self.field_of.get(named, named)
        self.add_error(field if field in self.fields else None, error.message)


_LISTED = re.compile(r'(?:^|,)\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))')


def listed(text: str) -> list[str]:
    """The words between the commas of a field; one with a comma in it stands in quotes, as in a CSV file."""
    words = (
        match[1].replace('""', '"') if match[1] is not None else match[2]
        for match in _LISTED.finditer(text)
    )
    return [word.strip() for word in words if word.strip()]


def in_list(words: Iterable[str]) -> str:
    """The text of a field that `listed` reads as these words."""
    return ", ".join(
        '"{}"'.format(word.replace('"', '""')) if "," in word or word.startswith('"') else word
        for word in words
    )


class LinesField(forms.CharField):
    """A text of several lines. Browsers send each line break as CRLF: what is entered has LF, and other line breaks alone make
    no other text of one."""

    def to_python(self, value: Any) -> str:
        return plain_breaks(super().to_python(value) or "")

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(plain_breaks(initial or ""), data)
