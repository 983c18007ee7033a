"""A capability's name and a version's parts, and the checks of them."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from apps.agent.tools.base import find_tool
from apps.capabilities.catalog.schemas import clean_output_schema, clean_schema
from apps.capabilities.catalog.source import SourceFacts, read_source
from apps.capabilities.models import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS
from apps.capabilities.sandbox.requirements import parse_requirements
from apps.core.db.writing import once
from apps.core.errors import InvalidInput, TooLarge
from apps.core.http.addresses import AddressRefused, canonical_host
from apps.core.jobs.apart import apart
from apps.core.text import canonical_json, clean_text, depth_of, plain_breaks

PREFIX = "cap_"
NAME = re.compile(r"[a-z][a-z0-9_]{1,47}")
SECRET = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
HOST = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)
PAGES = frozenset({"new", "install"})
"""Names of pages that stand where a capability's own page would."""
RESERVED_ENVIRONMENT = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "SHELL",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "TZ",
        "IFS",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ]
)
RESERVED_BEGINNINGS = ("PYTHON", "LD_", "IZZY_", "DYLD_")


def clean_name(value: object) -> str:
    """A capability's name: a lower-case letter, then letters, digits and underscores, 2 to 48 characters in all, and
    not the name of a built-in tool."""
    name = clean_text(value, field="name", max_chars=10 * MAX_NAME_CHARS)
    if not NAME.fullmatch(name):
        message = (
            "name must begin with a lower-case letter and have 2 to 48 lower-case letters, digits and underscores, "
            f"for example weather_lookup; {name[:60]!r} does not."
        )
        raise InvalidInput(message, code="invalid_name", field="name")
    if find_tool(name) is not None or name.startswith(PREFIX) or name in PAGES:
        message = f"{name} is taken by Izzy itself. Choose another name."
        if name.startswith(PREFIX):
            message = f"name must not begin with {PREFIX}: that is put before it anyway."
        raise InvalidInput(message, code="reserved_name", field="name")
    return name


def clean_host(value: object) -> str:
    """A host as a version names it: `name` or `name:port`, in lower case; no address, scheme, path or wildcard."""
    text = clean_text(value, field="hosts", max_chars=300).lower()
    host, colon, port = text.partition(":")
    with suppress(AddressRefused):  # which is no name of a host then
        host = host if host.isascii() else canonical_host(host)
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    if not HOST.fullmatch(host) or _is_address(host) or (colon and not is_port):
        message = f"{text[:80]!r} is no host. Give names such as api.example.org, with a port where it is not 80 or 443."
        raise InvalidInput(message, code="invalid_host", field="hosts")
    return f"{host}{colon}{port}"


def clean_secret_name(value: object) -> str:
    """A secret's name is that of an environment variable: capital letters, digits and underscores."""
    name = clean_text(value, field="secrets", max_chars=200)
    if not SECRET.fullmatch(name):
        message = f"{name[:80]!r} is no name for a secret: use capital letters, digits and underscores, such as WEATHER_API_KEY."
        raise InvalidInput(message, code="invalid_secret_name", field="secrets")
    if name in RESERVED_ENVIRONMENT or name.startswith(RESERVED_BEGINNINGS):
        raise InvalidInput(
            f"{name} means something to the system. Choose another name.",
            code="invalid_secret_name",
            field="secrets",
        )
    return name


def _is_address(host: str) -> bool:
    """Whether it is an address in any spelling: names end in a label that is not a number (RFC 3696)."""
    last = host.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


MAIN, REQUIREMENTS, MANIFEST, RUN_MD = "main.py", "requirements.txt", "manifest.json", "RUN.md"
MAX_MAIN_CHARS = 200_000
SHORT_SOURCE = 20_000
MAX_REQUIREMENTS_CHARS = 10_000
MAX_RUN_MD_CHARS = 50_000
MAX_TAGS, MAX_TAG_CHARS = 20, 50
MAX_HOSTS = MAX_SECRETS = 20
MAX_EXAMPLES, MAX_EXAMPLE_CHARS = 20, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The content of a version. `run_md` empty: it is generated. `examples` are `{input, expect?}`: `expect` is the
    result, or a part of it, that the run must give; "" asks for an empty one."""

    description: str
    input_schema: Mapping[str, Any]
    main: str
    requirements: str = ""
    run_md: str = ""
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()
    hosts: Sequence[str] = ()
    secrets: Sequence[str] = ()
    examples: Sequence[Mapping[str, Any]] = ()


def clean_draft(draft: Draft) -> Draft:
    """The draft as it may be stored. Raises InvalidInput or TooLarge, naming the field."""
    schema = clean_schema(draft.input_schema)
    requirements = _text(draft.requirements, REQUIREMENTS, MAX_REQUIREMENTS_CHARS)
    parse_requirements(
        requirements
    )  # each line as every sandbox takes it, so that a bad one is refused at once
    return Draft(
        description=clean_description(draft.description),
        input_schema=schema,
        main=clean_main(draft.main),
        requirements=requirements,
        run_md=_text(draft.run_md, RUN_MD, MAX_RUN_MD_CHARS),
        output_schema=clean_output_schema(draft.output_schema),
        tags=clean_tags(draft.tags),
        hosts=clean_hosts(draft.hosts),
        secrets=clean_secrets(draft.secrets),
        examples=clean_examples(draft.examples, schema),
    )


def clean_description(value: object) -> str:
    """One paragraph that tells the model when to use the tool."""
    text = clean_text(value, field="description", max_chars=MAX_DESCRIPTION_CHARS)
    return " ".join(text.split())


def clean_main(value: object) -> str:
    """Python that defines `run` with one argument at its top level."""
    source = _text(value, MAIN, MAX_MAIN_CHARS)
    if not source.strip():
        raise InvalidInput(f"{MAIN} is missing.", code="empty_text", field=MAIN)
    facts = once(source_facts, source)
    if facts.error:
        place = f"line {facts.line}: {facts.error}" if facts.line else facts.error
        message = f"{MAIN} is no valid Python: {place}."
        raise InvalidInput(message, code="invalid_python", field=MAIN, line=facts.line or 1)
    if not facts.defines_run:
        message = (
            f"{MAIN} must define a function run(args) that takes the input as a dict and returns text."
        )
        raise InvalidInput(message, code="no_run", field=MAIN)
    return source


def source_facts(source: str) -> SourceFacts:
    """Reads facts from the code. Python's parser lets no other thread work meanwhile: long code is read apart."""
    return read_source(source) if len(source) <= SHORT_SOURCE else apart(read_source, source)


def run_docstring(source: str) -> str:
    """The docstring of `run`, else of the module; "" where there is none."""
    return once(source_facts, source).docstring


def clean_tags(values: object) -> list[str]:
    """Short words, in lower case, each once, in the order given."""
    tags = []
    for value in _sequence(values, "tags", MAX_TAGS):
        tag = " ".join(clean_text(value, field="tags", max_chars=MAX_TAG_CHARS).lower().split())
        tags.append(tag)
    return list(dict.fromkeys(tags))


def clean_permissions(value: object) -> tuple[list[Any], list[Any]]:
    """`(hosts, secrets)` of a `{hosts, secrets}` object, both optional; not yet checked one by one."""
    if value is None:
        return [], []
    if not isinstance(value, dict) or set(value) - {"hosts", "secrets"}:
        raise InvalidInput(
            "permissions is an object with hosts and secrets.", code="wrong_type", field="permissions"
        )
    return [list(_sequence(value.get(name), name, MAX_HOSTS)) for name in ("hosts", "secrets")]  # type: ignore[return-value]


def clean_hosts(values: object) -> list[str]:
    """Hosts as `clean_host` takes them, sorted, each once."""
    return sorted({clean_host(value) for value in _sequence(values, "hosts", MAX_HOSTS)})


def clean_secrets(values: object) -> list[str]:
    """Names of secrets, sorted, each once."""
    return sorted({clean_secret_name(value) for value in _sequence(values, "secrets", MAX_SECRETS)})


def clean_examples(values: object, schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Examples whose inputs fit the schema."""
    return [_clean_example(value, schema) for value in clean_listed(values, field="examples")]


def clean_listed(values: object, *, field: str) -> Sequence[Any]:
    """A list of examples, each of which is checked with the schema."""
    return _sequence(values, field, MAX_EXAMPLES)


def _text(value: object, field: str, most: int) -> str:
    """A file's text as it was written, with the line ends of files; it may be empty."""
    clean_text(value, field=field, max_chars=most, allow_empty=True)
    text = plain_breaks(str(value))
    return text if not text.strip() or text.endswith("\n") else f"{text}\n"


def _sequence(values: object, field: str, most: int) -> Sequence[Any]:
    if values is None:
        return []
    if not isinstance(values, list | tuple):
        raise InvalidInput(f"{field} must be a list.", code="wrong_type", field=field)
    if len(values) > most:
        raise TooLarge(f"At most {most} {field} are accepted.", field=field, limit=most)
    return values


def _clean_example(value: object, schema: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(value, dict) or "input" not in value or set(value) - {"input", "expect"}:
        message = "An example is an object with input and, if you like, expect."
        raise InvalidInput(message, code="wrong_type", field="examples")
    from apps.agent.tools.schema import (  # loading jsonschema takes a tenth of a second
        MAX_INPUT_DEPTH,
        input_error,
    )

    if depth_of(value) > MAX_INPUT_DEPTH or len(canonical_json(value)) > MAX_EXAMPLE_CHARS:
        raise TooLarge(
            f"An example has at most {MAX_EXAMPLE_CHARS:,} characters.",
            field="examples",
            limit=MAX_EXAMPLE_CHARS,
        )
    if problem := input_error(schema, value["input"]):
        raise InvalidInput(
            f"An example's input does not fit input_schema: {problem}",
            code="bad_example",
            field="examples",
        )
    example = {"input": value["input"]}
    if (expect := value.get("expect")) is not None:
        example["expect"] = clean_text(
            expect, field="examples", max_chars=MAX_EXAMPLE_CHARS, allow_empty=True
        )
    return example
