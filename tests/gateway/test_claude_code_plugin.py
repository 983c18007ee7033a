"""The plugin folder for Claude Code, by what Claude Code documents of manifests, hooks, MCP servers and marketplaces."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema

from apps.gateway.hooks.dialects import DIALECTS, Kind
from izzy_cli.hooks import run
from izzy_cli.hooks.clients import CLIENTS

ROOT = Path(__file__).parent.parent.parent

TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}
PERSON = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"name": TEXT, "email": TEXT, "url": TEXT},
    "required": ["name"],
}
OPTION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["string", "number", "boolean", "directory", "file"]},
        "title": TEXT,
        "description": TEXT,
        "sensitive": {"type": "boolean"},
        "required": {"type": "boolean"},
        "default": {},
    },
    "required": ["type", "title", "description"],
}
MANIFEST = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": NAME,
        "displayName": TEXT,
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "description": TEXT,
        "author": PERSON,
        "keywords": {"type": "array", "items": TEXT},
        "userConfig": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "additionalProperties": OPTION,
        },
    },
    "required": ["name"],
}
HOOK = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"const": "command"},
        "command": {"type": "string", "pattern": r"^\S+$"},  # with args, an executable alone
        "args": {"type": "array", "items": TEXT},
        "timeout": {"type": "number", "exclusiveMinimum": 0},
        "async": {"type": "boolean"},
    },
    "required": ["type", "command"],
}
GROUP = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"matcher": TEXT, "hooks": {"type": "array", "items": HOOK, "minItems": 1}},
    "required": ["hooks"],
}
HOOKS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "description": TEXT,
        "hooks": {"type": "object", "additionalProperties": {"type": "array", "items": GROUP}},
    },
    "required": ["hooks"],
}
SERVER = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["http", "sse", "ws"]},
        "url": TEXT,
        "headers": {"type": "object", "additionalProperties": TEXT},
    },
    "required": ["type", "url"],
}
MARKETPLACE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": NAME,
        "description": TEXT,
        "owner": PERSON,
        "plugins": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "name": NAME,
                    "source": {"type": "string", "pattern": r"^\./"},
                    "description": TEXT,
                    "category": TEXT,
                },
                "required": ["name", "source"],
            },
        },
    },
    "required": ["name", "owner", "plugins"],
}


def read(*path: str) -> Any:
    return json.loads(ROOT.joinpath(*path).read_text())


MANIFEST_FILE = ("integrations", "claude-code", ".claude-plugin", "plugin.json")
HOOKS_FILE = ("integrations", "claude-code", "hooks", "hooks.json")
MCP_FILE = ("integrations", "claude-code", ".mcp.json")
MARKETPLACE_FILE = (".claude-plugin", "marketplace.json")


def test_each_file_is_as_documented() -> None:
    for path, schema in {
        MANIFEST_FILE: MANIFEST,
        HOOKS_FILE: HOOKS,
        MARKETPLACE_FILE: MARKETPLACE,
    }.items():
        jsonschema.validate(read(*path), schema)
    for server in read(*MCP_FILE)["mcpServers"].values():
        jsonschema.validate(server, SERVER)


def test_the_marketplace_names_the_plugin_that_is_there() -> None:
    [entry] = read(*MARKETPLACE_FILE)["plugins"]
    assert (ROOT / entry["source"] / ".claude-plugin" / "plugin.json").is_file()
    assert entry["name"] == read(*MANIFEST_FILE)["name"]


def test_what_is_asked_for_is_what_the_parts_take() -> None:
    asked = read(*MANIFEST_FILE)["userConfig"]
    assert asked["token"]["sensitive"] is True
    used = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(read(*MCP_FILE))))
    taken = set(re.findall(r"CLAUDE_PLUGIN_OPTION_(\w+)", Path(str(run.__file__)).read_text()))
    assert used == {name.lower() for name in taken} == set(asked)


def test_its_hooks_are_those_that_are_installed_and_that_the_server_knows() -> None:
    hooks = read(*HOOKS_FILE)["hooks"]
    assert tuple(hooks) == CLIENTS["claude-code"].events
    for event, groups in hooks.items():
        [hook] = [hook for group in groups for hook in group["hooks"]]
        assert [hook["command"], *hook["args"]] == ["izzy", "hook", "claude-code"]
        kind = DIALECTS["claude-code"].events[event]
        assert hook.get("async", False) == (kind is Kind.STOP)
