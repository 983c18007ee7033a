"""The forms of the editor, of installing, and of secrets. What they may hold is checked by the services."""

import json
from typing import Any, ClassVar

from django import forms

from apps.capabilities.catalog.drafts import (
    MAIN,
    MAX_MAIN_CHARS,
    MAX_REQUIREMENTS_CHARS,
    MAX_RUN_MD_CHARS,
    REQUIREMENTS,
    RUN_MD,
    Draft,
    clean_description,
    clean_examples,
    clean_hosts,
    clean_main,
    clean_name,
    clean_secret_name,
    clean_secrets,
    clean_tags,
)
from apps.capabilities.catalog.schemas import clean_output_schema, clean_schema
from apps.capabilities.catalog.secrets import clean_secret_value
from apps.capabilities.models import MAX_DESCRIPTION_CHARS
from apps.capabilities.sandbox.requirements import parse_requirements
from apps.core.errors import InvalidInput
from apps.core.http.drf import parse_json
from apps.core.http.forms import PlainForm, in_list, listed

STARTER = '''def run(args: dict) -> str:
    """Say hello. What stands here is what Izzy reads when it needs to know more."""
    name = args["name"]
    return f"Hello, {name}!"
'''
STARTER_SCHEMA = """{
  "type": "object",
  "properties": {
    "name": {
      "type": "string",
      "description": "Whom to greet."
    }
  },
  "required": ["name"]
}
"""
MAX_JSON_CHARS = 40_000


def _code(rows: int, **attrs: str) -> forms.Textarea:
    return forms.Textarea(
        attrs={
            "class": "input code-input",
            "rows": rows,
            "spellcheck": "false",
            "data-code": "",
            **attrs,
        }
    )


class EditorForm(PlainForm):
    """A capability by hand."""

    field_of: ClassVar = {MAIN: "main", REQUIREMENTS: "requirements", RUN_MD: "run_md"}
    checks: ClassVar = {
        "description": clean_description,
        "tags": lambda given: clean_tags(listed(given)),
        "main": clean_main,
        "requirements": parse_requirements,
        "input_schema": lambda given: clean_schema(_json(given, "input_schema", {})),
        "output_schema": lambda given: clean_output_schema(_json(given, "output_schema", {})),
        "hosts": lambda given: clean_hosts(_lines(given)),
        "secrets": lambda given: clean_secrets(_lines(given)),
    }

    name = forms.CharField(
        max_length=100,
        widget=forms.TextInput(
            attrs={
                "class": "input mono",
                "placeholder": "weather_lookup",
                "autocapitalize": "none",
                "spellcheck": "false",
            }
        ),
        help_text="Small letters, digits and underscores. It cannot be changed later.",
    )
    description = forms.CharField(
        max_length=MAX_DESCRIPTION_CHARS,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What it does and when to use it: by this Izzy decides.",
    )
    tags = forms.CharField(
        required=False,
        max_length=1000,
        widget=forms.TextInput(attrs={"placeholder": "weather, travel"}),
    )
    main = forms.CharField(label="main.py", strip=False, max_length=MAX_MAIN_CHARS, widget=_code(16))
    requirements = forms.CharField(
        label="requirements.txt",
        required=False,
        strip=False,
        max_length=MAX_REQUIREMENTS_CHARS,
        widget=_code(3, placeholder="requests==2.32.5"),
        help_text="Packages from the index, one a line. Most tools need none.",
    )
    input_schema = forms.CharField(
        label="Input",
        max_length=MAX_JSON_CHARS,
        widget=_code(10),
        help_text="A JSON schema: the form and Izzy's calls follow it.",
    )
    output_schema = forms.CharField(
        label="Result",
        required=False,
        max_length=MAX_JSON_CHARS,
        widget=_code(3),
        help_text="A JSON schema of the result, if it is JSON.",
    )
    hosts = forms.CharField(
        required=False,
        max_length=6000,
        widget=_code(3, placeholder="api.open-meteo.com"),
        help_text="Hosts it may reach, one a line. None: no network.",
    )
    secrets = forms.CharField(
        required=False,
        max_length=2000,
        widget=_code(3, placeholder="WEATHER_API_KEY"),
        help_text="Names of stored secrets it gets as environment variables, one a line.",
    )
    examples = forms.CharField(
        required=False,
        max_length=MAX_JSON_CHARS * 4,
        widget=_code(5, placeholder='[{"input": {"name": "Ada"}, "expect": "Hello, Ada!"}]'),
        help_text="A JSON list of {input, expect}. They fill the form and are repeated by tests.",
    )
    run_md = forms.CharField(
        label="RUN.md",
        required=False,
        strip=False,
        max_length=MAX_RUN_MD_CHARS,
        widget=_code(5),
        help_text="How to use it. Left empty it is written from the rest.",
    )

    def clean(self) -> dict[str, Any]:
        """Looks at all fields; at the examples with the schema of the input, where that is one."""
        given = super().clean()
        if not self.fields["name"].disabled and "name" in given:
            self.check("name", clean_name, given["name"])
        if {"input_schema", "examples"} <= given.keys():
            schema = _json(given["input_schema"], "input_schema", {})
            self.check(
                "examples",
                lambda text: clean_examples(_json(text, "examples", []), schema),
                given["examples"],
            )
        return given

    @classmethod
    def empty(cls) -> "EditorForm":
        return cls(initial={"main": STARTER, "input_schema": STARTER_SCHEMA})

    @classmethod
    def of(cls, name: str, draft: Draft, data: Any = None) -> "EditorForm":
        """The form filled with a version; the name stays."""
        initial = {
            "name": name,
            "description": draft.description,
            "tags": in_list(draft.tags),
            "main": draft.main,
            "requirements": draft.requirements,
            "input_schema": _pretty(draft.input_schema),
            "output_schema": _pretty(draft.output_schema) if draft.output_schema else "",
            "hosts": "\n".join(draft.hosts),
            "secrets": "\n".join(draft.secrets),
            "examples": _pretty(draft.examples) if draft.examples else "",
            "run_md": draft.run_md,
        }
        form = cls(data, initial=initial)
        form.fields["name"].disabled = True
        return form

    def draft(self) -> Draft:
        """The entered draft. Raises InvalidInput for invalid JSON."""
        values = self.cleaned_data
        return Draft(
            description=values["description"],
            input_schema=_json(values["input_schema"], "input_schema", {}),
            main=values["main"],
            requirements=values["requirements"],
            run_md=values["run_md"],
            output_schema=_json(values["output_schema"], "output_schema", {}),
            tags=listed(values["tags"]),
            hosts=_lines(values["hosts"]),
            secrets=_lines(values["secrets"]),
            examples=_json(values["examples"], "examples", []),
        )


class ArchiveForm(PlainForm):
    """A capability as a zip."""

    file = forms.FileField(
        label="Zip file", widget=forms.FileInput(attrs={"accept": ".zip,application/zip"})
    )


class SecretForm(PlainForm):
    """A secret; its value is never shown again."""

    checks: ClassVar = {"name": clean_secret_name, "value": clean_secret_value}

    name = forms.CharField(
        max_length=64,
        widget=forms.TextInput(
            attrs={
                "class": "input mono",
                "placeholder": "WEATHER_API_KEY",
                "autocapitalize": "characters",
                "spellcheck": "false",
                "autocomplete": "off",
            }
        ),
        help_text="Capital letters, digits and underscores. A name that exists gets the new value.",
    )
    value = forms.CharField(
        max_length=20_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Kept encrypted and never shown again.",
    )


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _json(text: str, field: str, empty: Any) -> Any:
    if not text.strip():
        return empty
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"))
    except InvalidInput as error:
        message = error.message.replace("The body", "This").replace("The JSON", "This")
        raise InvalidInput(message[:250], code=error.code, field=field) from error


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace(",", "\n").splitlines() if line.strip()]
