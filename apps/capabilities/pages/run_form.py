"""The form that runs a capability, made from its input schema."""

import json
from typing import Any

from django import forms
from django.utils.html import escape

from apps.core.errors import InvalidInput
from apps.core.http.drf import parse_json
from apps.core.http.forms import LinesField
from apps.core.text import depth_of

MAX_FIELD_CHARS = 100_000
MAX_FIELDS = 30
LONG_HINTS = ("text", "content", "body", "code", "message", "csv", "html", "markdown", "json")


class RunForm(forms.Form):
    """One field for each property; what is not a plain value, or the whole input where there are too many, is JSON."""

    def __init__(
        self, schema: dict[str, Any], *args: Any, example: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        self.schema = schema
        properties = schema.get("properties")
        self.properties: dict[str, Any] = properties if isinstance(properties, dict) else {}
        self.names = list(self.properties)
        self.whole = len(self.names) > MAX_FIELDS or (
            not self.names and schema.get("additionalProperties") is not False
        )
        example = example or {}
        if self.whole:
            text = json.dumps(example, indent=2, ensure_ascii=False) if example else "{}"
            hint = "The whole input as a JSON object."
            self.fields["input"] = _json_field("Input", True, text, hint, kind=_ObjectField)
            return
        required = schema.get("required", [])
        self.null_if_empty: set[str] = set()
        for place, name in enumerate(self.names):
            plain = _plain(self.properties[name], schema)
            if name in required and "null" in _kinds(plain):
                self.null_if_empty.add(name)
            needed = name in required and name not in self.null_if_empty
            self.fields[f"field-{place}"] = _field(name, plain, needed, example.get(name))

    def args(self) -> dict[str, Any]:
        """The entered input of a run; fields left empty are left out, or null where they must be there. Call it after `is_valid`."""
        if self.whole:
            return dict(self.cleaned_data["input"])
        given: dict[str, Any] = {}
        for place, name in enumerate(self.names):
            value = self.cleaned_data.get(f"field-{place}")
            if value not in (None, ""):
                given[name] = value
            elif name in self.null_if_empty:
                given[name] = None
        return given


class _JSONField(forms.CharField):
    """A JSON value in a text area."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text.strip():
            return None
        try:
            found = parse_json(text.encode("utf-8", "surrogatepass"))
        except InvalidInput as error:
            raise forms.ValidationError("This is not valid JSON.") from error
        if depth_of(found) > 100:
            raise forms.ValidationError("This is nested too deeply.")
        return found


class _ObjectField(_JSONField):
    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        if not isinstance(found, dict):
            raise forms.ValidationError("The input must be a JSON object.")
        return found


def _plain(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """The schema of a property, a reference followed."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
        return {**(target if isinstance(target, dict) else {}), **schema}
    return schema


def _kinds(schema: dict[str, Any]) -> list[str]:
    """The types that a value may have, by any of several schemas too; none where nothing is said."""
    kinds = schema.get("type", [])
    either = [
        each for each in schema.get("anyOf") or schema.get("oneOf") or [] if isinstance(each, dict)
    ]
    own = list(kinds) if isinstance(kinds, list) else [str(kinds)]
    return own + [kind for each in either for kind in _kinds(each)]


def _field(name: str, schema: dict[str, Any], required: bool, value: Any) -> forms.Field:
    label = str(schema.get("title") or name.replace("_", " ").replace("-", " ")).strip().capitalize()
    hint = str(schema.get("description") or "")
    if value is None:
        value = schema.get("default")
    kinds, options = [kind for kind in _kinds(schema) if kind != "null"], schema.get("enum")
    kind = kinds[0] if len(kinds) == 1 else ""
    if isinstance(options, list) and "null" in _kinds(schema):
        options = [item for item in options if item is not None]  # an empty field means it
    plain = isinstance(options, list) and all(
        isinstance(item, str | int | float) and not isinstance(item, bool) for item in options
    )
    common: dict[str, Any] = {"label": label, "required": required, "help_text": escape(hint)}
    if plain and options:
        return _choice(common, value, options)
    if kind == "boolean":
        return _choice(common, value, [True, False])
    if kind in {"integer", "number"}:
        step, number = ("1", forms.IntegerField) if kind == "integer" else ("any", _Number)
        widget = forms.NumberInput(attrs={"class": "input", "step": step})
        return number(initial=value, widget=widget, **common)
    if kind == "string":
        most = schema.get("maxLength")
        long = any(word in name.lower() for word in LONG_HINTS) or (isinstance(most, int) and most > 300)
        area, line = (
            forms.Textarea(attrs={"class": "input", "rows": 4}),
            forms.TextInput(attrs={"class": "input"}),
        )
        return LinesField(
            initial=value,
            max_length=MAX_FIELD_CHARS,
            strip=False,
            widget=area if long else line,
            **common,
        )
    text = "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)
    return _json_field(label, required, text, hint or "JSON")


class _Number(forms.FloatField):
    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        return (
            int(found)
            if isinstance(found, float) and found.is_integer() and abs(found) < 2**53
            else found
        )


def _choice(common: dict[str, Any], value: Any, options: list[Any]) -> forms.Field:
    known = {json.dumps(item): item for item in options}
    words = {True: "Yes", False: "No"}
    choices = [
        (key, words[item] if isinstance(item, bool) else str(item)) for key, item in known.items()
    ]
    if not common["required"] or value is None:
        choices.insert(0, ("", "–"))
    return forms.TypedChoiceField(
        initial="" if value is None else json.dumps(value),
        choices=choices,
        coerce=known.get,
        empty_value=None,
        widget=forms.Select(attrs={"class": "input"}),
        **common,
    )


def _json_field(
    label: str, required: bool, text: str, hint: str, *, kind: type[_JSONField] = _JSONField
) -> forms.Field:
    area = forms.Textarea(
        attrs={"class": "input code-input", "rows": 5, "spellcheck": "false", "data-code": ""}
    )
    # Templates show help as HTML, and this was written by whoever wrote the tool.
    return kind(
        label=label,
        required=required,
        initial=text,
        help_text=escape(hint),
        max_length=MAX_FIELD_CHARS,
        widget=area,
    )
