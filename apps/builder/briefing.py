"""The builder's first message: what to build, and what there is already."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from apps.builder.models import Build, Kind
from apps.capabilities.drafts import MAIN, REQUIREMENTS, RUN_MD
from apps.capabilities.models import Execution
from apps.capabilities.selectors import capability_get, version_waiting
from apps.capabilities.services.versions import draft_of

MAX_FAILURE_CHARS = 6_000
NO_SCHEMA = "none was given. Design one from the description, and hand it in as input_schema."


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "prompts" / "builder.md").read_text(encoding="utf-8").strip()


def system_prompt(*, rounds: int) -> str:
    """The same text for every build, so that it stays cached."""
    return _prompt().replace("{rounds}", str(rounds))


@dataclass(frozen=True, slots=True)
class Brief:
    """The first message, and the files that lie in the sandbox from the start."""

    text: str
    files: dict[str, str]


def brief_for(build: Build) -> Brief:
    """Reads the current version, where there is one, and the failed run of a repair."""
    lines = [
        "Build this tool." if build.kind == Kind.NEW else "Make a new version of this tool.",
        f"Name: {build.name}",
        f"Description: {build.description}",
        f"Input schema: {_schema(build)}",
    ]
    if build.request:
        lines.append(f"The user had said: <said>{build.request}</said>")
    if build.feedback:
        lines.append(f"What to do differently: <feedback>{build.feedback}</feedback>")
    run = _failed_run(build)
    files = _present_files(build, run)
    if run is not None:
        lines += _failure(run)
    if files:
        lines.append("These files of its present version lie in the sandbox:")
        lines += [f"--- {name}\n{text}" for name, text in files.items() if text.strip()]
    return Brief("\n\n".join(lines), files)


def _schema(build: Build) -> str:
    """Builds asked for on the builds page have none."""
    given = build.kind != Kind.NEW or bool(build.input_schema.get("properties"))
    return json.dumps(build.input_schema, ensure_ascii=False) if given else NO_SCHEMA


def _failed_run(build: Build) -> Execution | None:
    if build.execution_id is None:
        return None
    return Execution.objects.for_user(build.user_id).filter(pk=build.execution_id).first()


def _present_files(build: Build, run: Execution | None) -> dict[str, str]:
    """Those of the newest version: one that waits beside the current one is what the user saw last. For a repair those of
    the version that failed, where it is one of the two."""
    capability = capability_get(build.user_id, build.name)
    if capability.current is None:
        return {}
    waiting = version_waiting(capability)
    meant = waiting is not None and (run is None or run.version == waiting.number)
    draft = draft_of(capability, waiting if meant else None)
    parts = {MAIN: draft.main, REQUIREMENTS: draft.requirements, RUN_MD: draft.run_md}
    examples = {"examples.json": json.dumps(list(draft.examples), ensure_ascii=False, indent=1)}
    return {name: text for name, text in (parts | examples).items() if text.strip()}


def _failure(run: Execution) -> list[str]:
    said = [
        "It failed on this input; find out why and correct it. Use this input as one of the examples where it makes sense.",
        f"Input: {json.dumps(run.input, ensure_ascii=False)[:MAX_FAILURE_CHARS]}",
        f"Error ({run.error_code}): {run.error_message[-MAX_FAILURE_CHARS:]}",
    ]
    output = (run.stdout + run.stderr).strip()
    return [*said, f"It printed: {output[-MAX_FAILURE_CHARS:]}"] if output else said
