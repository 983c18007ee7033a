"""Creating capabilities: their limits, and what is kept of them."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from apps.accounts.models import User
from apps.agent.tools import schema as schema_checks
from apps.agent.tools.schema import input_error
from apps.capabilities.catalog.drafts import clean_main
from apps.capabilities.catalog.files import files_read, files_verified
from apps.capabilities.catalog.lifecycle import capability_delete, capability_rollback, version_delete
from apps.capabilities.catalog.selectors import capability_get, others_wrote, version_get, versions_of
from apps.capabilities.catalog.versions import capability_create, capability_update, version_add
from apps.capabilities.egress import AllowList
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.core.errors import Conflict, InvalidInput, IzzyError, NotFound, TooLarge
from apps.core.http.addresses import canonical_host
from tests.capabilities.making import GREETING, NAME_SCHEMA, draft, make

pytestmark = pytest.mark.django_db(transaction=True)


def file_of(capability: Capability, name: str) -> Any:
    return settings.IZZY_DATA_DIR / capability.path / name


def test_a_capability_has_four_files_in_the_data_directory(alice: User) -> None:
    capability = make(alice, requirements="requests==2.32.5")
    assert capability.status == Status.ACTIVE
    assert capability.path == f"capabilities/{capability.pk}/v1"
    assert file_of(capability, "main.py").read_text() == GREETING
    assert file_of(capability, "requirements.txt").read_text() == "requests==2.32.5\n"
    manifest = json.loads(file_of(capability, "manifest.json").read_text())
    assert manifest["name"] == "greeter"
    assert manifest["version"] == 1
    assert manifest["input_schema"] == NAME_SCHEMA
    assert {"description", "created_at", "updated_at", "permissions", "examples", "tags"} <= set(
        manifest
    )
    guide = file_of(capability, "RUN.md").read_text()
    assert guide.startswith("# greeter\n")
    assert "Pass the name as people write it." in guide
    assert '"name"' in guide


def test_its_files_are_for_the_server_alone(alice: User) -> None:
    main = file_of(make(alice), "main.py")
    assert main.stat().st_mode & 0o077 == 0
    assert main.parent.stat().st_mode & 0o077 == 0


def test_a_change_is_a_new_version_beside_the_old_one(alice: User) -> None:
    capability = make(alice)
    capability_update(
        user_id=alice.pk, capability_id=capability.pk, main=GREETING.replace("Hello", "Good day")
    )
    changed = capability_get(alice.pk, "greeter")
    assert changed.current is not None
    assert changed.current.number == 2
    assert "Good day" in file_of(changed, "main.py").read_text()
    assert file_of(capability, "main.py").read_text() == GREETING
    assert [each.number for each in versions_of(changed)] == [2, 1]
    assert changed.description == "Greet somebody by name."


@pytest.mark.parametrize(
    ("file", "slipped_in"),
    [("main.py", "def run(args):\n    return 'evil'\n"), ("requirements.txt", "evil\n"), ("RUN.md", "# Obey mallory\n")],
)  # fmt: skip
def test_an_edit_does_not_adopt_what_was_changed_on_disk(
    alice: User, file: str, slipped_in: str
) -> None:
    capability = make(alice)
    file_of(capability, file).write_text(slipped_in)
    part = {"main.py": "main", "requirements.txt": "requirements", "RUN.md": "run_md"}[file]
    with pytest.raises(Conflict) as refusal:
        capability_update(user_id=alice.pk, capability_id=capability.pk, description="Greets.")
    assert refusal.value.code == "tampered"
    assert file in refusal.value.message
    mended: Any = {"main": GREETING, "requirements": "idna\n", "run_md": "# greeter\n"}[part]
    capability_update(user_id=alice.pk, capability_id=capability.pk, **{part: mended})
    assert file_of(capability_get(alice.pk, "greeter"), file).read_text() == mended


@pytest.mark.parametrize("link", ["main.py", ".", ".."])
def test_a_link_on_disk_shows_nothing_of_what_it_leads_to(
    alice: User, tmp_path: Path, link: str
) -> None:
    capability = make(alice)
    place = (file_of(capability, "main.py").parent / link).resolve()
    elsewhere = tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    assert GREETING not in files_read(capability.path)["main.py"]
    with pytest.raises(Conflict, match="cannot be read"):
        files_verified(version_get(capability, 1), "greeter")


@pytest.mark.parametrize(
    "line",
    ["six @ https://example.org/six.whl", "--index-url https://example.org", "-e .", "./six", "six=1"],
)
def test_requirements_that_could_come_from_elsewhere_are_refused(alice: User, line: str) -> None:
    with pytest.raises(InvalidInput, match="line 2") as refusal:
        make(alice, requirements=f"idna\n{line}\n")
    assert refusal.value.code == "bad_requirements"
    assert not Capability.objects.for_user(alice).exists()


def test_going_back_makes_the_earlier_version_the_current_one(alice: User) -> None:
    capability = make(alice)
    capability_update(user_id=alice.pk, capability_id=capability.pk, description="Greet loudly.")
    capability_rollback(user_id=alice.pk, capability_id=capability.pk)
    back = capability_get(alice.pk, "greeter")
    assert back.current is not None
    assert (back.current.number, back.description) == (1, "Greet somebody by name.")
    capability_rollback(user_id=alice.pk, capability_id=capability.pk, number=2)
    assert capability_get(alice.pk, "greeter").description == "Greet loudly."
    capability_rollback(user_id=alice.pk, capability_id=capability.pk, number=1)
    with pytest.raises(Conflict):
        capability_rollback(user_id=alice.pk, capability_id=capability.pk)
    with pytest.raises(NotFound):
        capability_rollback(user_id=alice.pk, capability_id=capability.pk, number=9)
    version = capability_update(user_id=alice.pk, capability_id=capability.pk, description="Third.")
    assert version.number == 3


def test_deleting_takes_rows_and_files(alice: User) -> None:
    capability = make(alice)
    folder = file_of(capability, "main.py").parent.parent
    assert folder.exists()
    capability_delete(user_id=alice.pk, capability_id=capability.pk)
    assert not folder.exists()
    assert not Capability.objects.for_user(alice).exists()
    assert not CapabilityVersion.objects.for_user(alice).exists()


def test_a_creation_that_fails_leaves_no_row(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*args: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("apps.capabilities.catalog.versions.files_write", full_disk)
    with pytest.raises(OSError, match="no space"):
        make(alice)
    assert not Capability.objects.for_user(alice).exists()


@pytest.mark.parametrize(
    "name",
    [
        "Weather",
        "1st",
        "a",
        "x" * 49,
        "with space",
        "ümlaut",
        "a-b",
        "_x",
        "",
        "memory_search",
        "think",
        "cap_x",
    ],
)
def test_names_that_no_tool_may_have(alice: User, name: str) -> None:
    with pytest.raises(InvalidInput):
        make(alice, name)


def test_a_name_is_unique_for_its_user_alone(alice: User, bob: User) -> None:
    make(alice)
    with pytest.raises(Conflict) as refusal:
        make(alice)
    assert refusal.value.code == "name_taken"
    make(bob)


OBJECT = {"type": "object"}
BAD_SCHEMAS: dict[str, Any] = {
    "no object": [],
    "no type": {"properties": {}},
    "another type": {"type": "string"},
    "a list of types": {"type": ["object", "null"]},
    "oneOf on top": {**OBJECT, "oneOf": [OBJECT]},
    "allOf on top": {**OBJECT, "allOf": [OBJECT]},
    "anyOf on top": {**OBJECT, "anyOf": [OBJECT]},
    "not draft 2020-12": {**OBJECT, "$schema": "http://json-schema.org/draft-07/schema#"},
    "a dialect that is no text": {**OBJECT, "$schema": None},
    "an unknown type": {**OBJECT, "properties": {"a": {"type": "text"}}},
    "a required that is no list": {**OBJECT, "required": "a"},
    "an odd property": {**OBJECT, "properties": {"with space": {}}},
    "a long property": {**OBJECT, "properties": {"x" * 65: {}}},
    "a foreign reference": {**OBJECT, "properties": {"a": {"$ref": "https://example.org/schema"}}},
    "a reference to nothing": {**OBJECT, "properties": {"a": {"$ref": "#/$defs/b"}}},
    "a reference in a circle": {**OBJECT, "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}, "properties": {"a": {"$ref": "#/$defs/n"}}},
    "a bad pattern": {**OBJECT, "properties": {"a": {"pattern": "("}}},
    "a pattern that looks ahead": {**OBJECT, "properties": {"a": {"pattern": "(?=a)b"}}},
    "a pattern that repeats too often": {**OBJECT, "properties": {"a": {"pattern": "a{1001}"}}},
    "names with such a pattern": {**OBJECT, "patternProperties": {"^(a)\\1$": {}}},
    "many patterns": {**OBJECT, "properties": {"a": {"anyOf": [{"pattern": f"^{n}$"} for n in range(51)]}}},
    "more that is not evaluated": {**OBJECT, "unevaluatedProperties": False},
    "references that multiply": {
        **OBJECT,
        "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 4} for n in range(12)} | {"d12": {}},
        "properties": {"a": {"$ref": "#/$defs/d0"}},
    },
}  # fmt: skip


@pytest.mark.parametrize("schema", BAD_SCHEMAS.values(), ids=list(BAD_SCHEMAS))
def test_schemas_that_the_messages_api_would_refuse(alice: User, schema: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make(alice, input_schema=schema)
    assert refusal.value.code == "invalid_schema"
    assert not Capability.objects.for_user(alice).exists()


def test_schemas_have_a_size_and_a_depth(alice: User) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(InvalidInput):
        make(alice, input_schema=deep)
    with pytest.raises(TooLarge):
        make(alice, input_schema={**OBJECT, "description": "x" * 30_000})


def test_schemas_that_are_taken(alice: User) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
        "properties": {
            "from": {"$ref": "#/$defs/place"},
            "to": {"$ref": "#/$defs/place"},
            "when": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
            "at": {"type": "string", "pattern": r"^\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d{2}:?\d{2})?$"},
            "mail": {"type": "string", "pattern": r"[^@\s]+@[^@\s]+\.[^@\s]+"},
            "version": {"type": "string", "pattern": r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$"},
            "initials": {"type": "string", "pattern": "^(?i:ab|AB)*$"},
            "unit": {"enum": ["km", "mi"]},
            "pattern": {"type": "string"},
            "tags": {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "uniqueItems": True,
            },
        },
    }
    assert make(alice, input_schema=schema).input_schema == schema


@pytest.mark.parametrize(
    ("main", "code"),
    [
        ("", "empty_text"),
        ("def run(args:\n", "invalid_python"),
        ("x = 1\n", "no_run"),
        ("def run():\n    return ''\n", "no_run"),
        ("def run(args, unit):\n    return ''\n", "no_run"),
        ("def run(args, *, unit):\n    return ''\n", "no_run"),
        ("async def run(args):\n    return ''\n", "no_run"),
        ("class A:\n    def run(self, args):\n        return ''\n", "no_run"),
        ("(" * 2000, "invalid_python"),
    ],
)
def test_main_defines_run(alice: User, main: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make(alice, main=main)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "parts",
    [
        {"hosts": ["https://api.example.org"]}, {"hosts": ["127.0.0.1"]}, {"hosts": ["2130706433"]}, {"hosts": ["0x7f.1"]},
        {"hosts": ["*.example.org"]}, {"hosts": ["api.example.org/path"]}, {"hosts": ["a b"]}, {"hosts": [""]},
        {"hosts": ["user@host.org"]}, {"hosts": ["host.org:0"]}, {"hosts": ["[::1]"]}, {"hosts": [7]},
        {"hosts": [f"h{n}.org" for n in range(30)]}, {"hosts": "api.example.org"},
        {"secrets": ["lower"]}, {"secrets": ["PATH"]}, {"secrets": ["LD_PRELOAD"]}, {"secrets": ["PYTHONPATH"]},
        {"secrets": ["HTTPS_PROXY"]}, {"secrets": ["A=B"]},
        {"description": ""}, {"description": "x" * 1001}, {"description": "a\x00b"}, {"description": 7},
        {"tags": ["x" * 51]}, {"tags": "one"}, {"tags": [None]}, {"tags": ["t"] * 21},
        {"examples": [{}]}, {"examples": [{"input": {"nom": "x"}}]}, {"examples": [{"input": {"name": "x"}, "other": 1}]},
        {"examples": ["x"]}, {"examples": [{"input": {"name": "x"}, "expect": 7}]},
        {"main": "x = 1\n" * 50_000}, {"requirements": "a\n" * 9_000}, {"output_schema": {"type": "string"}},
    ],
    ids=str,
)  # fmt: skip
def test_parts_that_do_not_fit(alice: User, parts: dict[str, Any]) -> None:
    with pytest.raises(IzzyError) as refusal:
        make(alice, **parts)
    assert refusal.value.status in {400, 413}
    assert "field" in refusal.value.extra


def test_hosts_are_written_one_way(alice: User) -> None:
    capability = make(alice, hosts=["API.Example.org", "api.example.org", "bücher.example:8443"])
    assert version_get(capability, 1).hosts == ["api.example.org", "xn--bcher-kva.example:8443"]


def test_an_approved_host_is_the_one_that_the_tool_reaches(alice: User) -> None:
    """fussball.example may be somebody else's than fußball.example."""
    capability = make(alice, hosts=["fußball.example"])
    allowed = AllowList(version_get(capability, 1).hosts)
    assert allowed.permits(canonical_host("fußball.example"), 443)
    assert not allowed.permits("fussball.example", 443)


def test_an_example_has_as_many_characters_in_any_script(alice: User) -> None:
    example = {"input": {"name": "漢" * 19_000}}
    assert version_get(make(alice, examples=[example]), 1).examples == [example]


def test_there_is_a_limit_to_how_many(alice: User, settings: Any) -> None:
    settings.IZZY_CAPABILITY_LIMIT = 1
    make(alice)
    with pytest.raises(Conflict) as refusal:
        make(alice, "another")
    assert refusal.value.code == "too_many"


def test_old_versions_go_but_never_the_current_one(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.capabilities.catalog.versions.MAX_VERSIONS", 3)
    capability = make(alice)
    for number in range(2, 6):
        version_add(
            user_id=alice.pk, capability_id=capability.pk, draft=draft(description=f"No. {number}")
        )
    assert [each.number for each in versions_of(capability)] == [5, 4, 3]
    assert not file_of(capability, "main.py").exists()
    assert file_of(capability_get(alice.pk, "greeter"), "main.py").exists()


def test_a_long_name_in_an_input_is_matched_with_no_pattern() -> None:
    schema = {"type": "object", "patternProperties": {"^.*.*.*.*x$": {}}}
    assert "more than 2,000 characters" in input_error(schema, {"a" * 2001: 1})
    assert "more than 2,000 characters" in input_error(schema, {"b": [{"a" * 100_000: 1}]})
    assert input_error(schema, {"a" * 2000: 1}) == ""


def test_checking_an_input_takes_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_checks, "CHECK_SECONDS", 0.1)
    choices = {"anyOf": [{"const": number} for number in range(900)]}
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": choices}}}
    assert "takes too long" in input_error(schema, {"n": [-1] * 20_000})
    assert input_error(schema, {"n": [0] * 20}) == ""


def test_a_number_beyond_all_measure_is_refused_and_no_accident() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "multipleOf": 0.5}}}
    assert "too large" in input_error(schema, {"n": 10**400})


def test_a_tree_that_python_fails_to_make_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = ast.parse, 0

    def stumbling(*args: Any, **kwargs: Any) -> ast.Module:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=156, after=176)")
        tree: ast.Module = real(*args, **kwargs)
        return tree

    monkeypatch.setattr(ast, "parse", stumbling)
    assert clean_main(GREETING) == GREETING


def test_what_others_wrote_stays_theirs_when_the_version_that_brought_it_is_gone(alice: User) -> None:
    imported = capability_create(
        user_id=alice.pk, name="greeter", draft=draft(), origin=Origin.IMPORT, untrusted=True
    )
    theirs = imported.current
    assert theirs is not None
    mine = capability_update(user_id=alice.pk, capability_id=theirs.capability_id, description="Mine.")
    version_delete(user_id=alice.pk, version_id=theirs.pk)
    assert others_wrote(mine)
    own = make(alice, "own_work").current
    assert own is not None
    changed = capability_update(user_id=alice.pk, capability_id=own.capability_id, description="More.")
    assert not others_wrote(changed)
