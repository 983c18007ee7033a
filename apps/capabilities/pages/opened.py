"""The pages of one capability: overview with the form to run it, files, versions, runs."""

import difflib
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from asgiref.sync import async_to_sync
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.capabilities.catalog.files import FILES, files_read, is_tampered
from apps.capabilities.catalog.selectors import (
    capability_get,
    execution_get,
    executions_of,
    retire_reason,
    secrets_missing,
    success_rate,
    version_waiting,
    versions_of,
)
from apps.capabilities.models import Capability, CapabilityVersion, Execution, Status, Trigger
from apps.capabilities.pages.run_form import RunForm
from apps.capabilities.runs.execution import RunOrigin, capability_execute, executions_interrupt
from apps.core.errors import IzzyError, NotFound
from apps.core.health import checks, recent_result
from apps.core.text import revealed

P = ParamSpec("P")
View = Callable[Concatenate[SignedInRequest, P], HttpResponse]
RECENT = 5
RUNS_PER_PAGE = 25
MAX_DIFF_LINES = 2_000
FILE_HINTS = {
    "main.py": "The code: run(args) gets the input and returns text.",
    "requirements.txt": "Packages it needs.",
    "manifest.json": "What it is, takes and may reach.",
    "RUN.md": "How to use it, read by Izzy when needed.",
}


def own(view: View[P]) -> View[P]:
    """A page of a capability that is unknown or somebody else's is not there."""

    @wraps(view)
    def guarded(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.message) from error

    return guarded


def found(request: SignedInRequest, name: str) -> Capability:
    return capability_get(request.user.pk, name)


def status_badge(capability: Capability) -> dict[str, str]:
    """`{tone, label}` of a capability's status."""
    if capability.status == Status.ACTIVE and capability.current and not capability.current.is_approved:
        return {"tone": "warn", "label": "Waits for your approval"}
    tones = {
        Status.ACTIVE: "ok",
        Status.BUILDING: "accent",
        Status.FAILED: "danger",
        Status.DISABLED: "",
    }
    return {"tone": tones[Status(capability.status)], "label": capability.get_status_display()}


def waiting_badge(waiting: CapabilityVersion) -> dict[str, str]:
    """The same for a newer version that waits beside the one in use."""
    stands = f"Version {waiting.number}"
    if not waiting.is_approved:
        return {"tone": "warn", "label": f"{stands} waits for your approval"}
    if waiting.test_failures:
        return {"tone": "danger", "label": f"{stands} failed its test"}
    if secrets_missing(waiting.user_id, waiting.secrets):
        return {"tone": "warn", "label": f"{stands} needs a secret"}
    return {"tone": "accent", "label": f"{stands} is being tested"}


def percent(capability: Capability) -> str:
    rate = success_rate(capability)
    return "" if rate is None else f"{rate:.0%}"


def sandbox_problem() -> str:
    """Why nothing can be run here at the moment, and what to do about it; "" where it can."""
    check = next((each for each in checks() if each.name == "sandbox"), None)
    result = recent_result(check) if check else None
    return "" if result is None or result.ok else f"{result.message} {result.hint}".strip()


def page(
    request: SignedInRequest,
    template: str,
    capability: Capability,
    tab: str,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """A page of one capability with its head and tabs."""
    current, waiting = capability.current, version_waiting(capability)
    frame = {
        "nav": "capabilities",
        "tab": tab,
        "capability": capability,
        "version": current,
        "badge": status_badge(capability),
        "success": percent(capability),
        "retire": retire_reason(capability),
        "sandbox_problem": sandbox_problem(),
        "tampered": bool(current and is_tampered(current, capability.name)),
        "waiting": waiting,
        "waiting_secrets": secrets_missing(request.user.pk, waiting.secrets) if waiting else [],
        "missing_secrets": secrets_missing(request.user.pk, current.secrets) if current else [],
    }
    return render(request, template, {**frame, **context}, status=status)


@require_GET
@own
def overview(request: SignedInRequest, capability: str) -> HttpResponse:
    """Shows its purpose and permissions, a form to try it, newest runs."""
    return _overview(request, found(request, capability))


@require_POST
@own
def run(request: SignedInRequest, capability: str) -> HttpResponse:
    """Runs it with what was entered; answers with its page, on which the result stands."""
    tool = found(request, capability)
    if tool.current is None:
        return redirect("capabilities:overview", capability=tool.name)
    form = RunForm(tool.current.input_schema, request.POST)
    problem, execution = "", None
    if form.is_valid():
        try:
            execution = async_to_sync(capability_execute)(
                user_id=request.user.pk,
                name=tool.name,
                args=form.args(),
                origin=RunOrigin(trigger=Trigger.PAGE),
            )
        except NotFound:
            raise
        except IzzyError as error:
            problem = error.message
    else:
        problem = " ".join(
            f"{form.fields[name].label}: {errors[0]}"
            for name, errors in form.errors.items()
            if name in form.fields
        )
    status = 422 if problem else 200
    tool = found(request, capability)  # as the run has left it
    return _overview(request, tool, form=form, execution=execution, problem=problem, status=status)


@require_GET
@own
def files(request: SignedInRequest, capability: str) -> HttpResponse:
    """The four files as they are on disk."""
    tool = found(request, capability)
    contents = files_read(tool.current.path) if tool.current else {}
    shown = [
        {
            "name": name,
            "text": contents[name],
            "html": coloured(name, revealed(contents[name])),
            "hint": FILE_HINTS[name],
            "key": name.replace(".", "-"),
        }
        for name in FILES
        if contents
    ]
    return page(request, "capabilities/files.html", tool, "files", {"files": shown})


@require_GET
@own
def versions(request: SignedInRequest, capability: str) -> HttpResponse:
    """All versions, newest first; one of them compared with the one before where `?compare=` names it."""
    tool = found(request, capability)
    rows = versions_of(tool)
    wanted = request.GET.get("compare", "")
    compared = next((row for row in rows if str(row.number) == wanted), None)
    diff = _compared(rows, compared) if compared else None
    context = {
        "versions": rows,
        "compared": compared,
        "diff": diff,
        "oldest": rows[-1].number if rows else 0,
    }
    return page(request, "capabilities/versions.html", tool, "versions", context)


@require_GET
@own
def runs(request: SignedInRequest, capability: str) -> HttpResponse:
    """Its runs, newest first."""
    tool = found(request, capability)
    executions_interrupt(user_id=request.user.pk)
    shown = Paginator(executions_of(tool), RUNS_PER_PAGE).get_page(request.GET.get("page"))
    return page(request, "capabilities/runs.html", tool, "runs", {"page": shown})


@require_GET
@own
def execution(request: SignedInRequest, capability: str, execution_id: str) -> HttpResponse:
    """One run with its input, result and logs."""
    tool = found(request, capability)
    executions_interrupt(user_id=request.user.pk)
    row = execution_get(request.user.pk, execution_id)
    if row.capability_id != tool.pk:
        raise Http404("There is no run with this id.")
    shown = json.dumps(row.input, indent=2, ensure_ascii=False)
    return page(request, "capabilities/run.html", tool, "runs", {"execution": row, "input_text": shown})


def _overview(
    request: SignedInRequest,
    tool: Capability,
    *,
    form: RunForm | None = None,
    execution: Execution | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    current = tool.current
    executions_interrupt(user_id=tool.user_id)
    if form is None and current is not None:
        form = RunForm(current.input_schema, example=_example(request, current))
    runnable = bool(current and current.is_approved and tool.status == Status.ACTIVE)
    context = {
        "form": form,
        "examples": range(1, len(current.examples) + 1) if current else [],
        "execution": execution,
        "problem": problem,
        "runnable": runnable,
        "recent": executions_of(tool)[:RECENT],
    }
    return page(request, "capabilities/overview.html", tool, "overview", context, status=status)


def _example(request: SignedInRequest, version: CapabilityVersion) -> dict[str, Any] | None:
    """The example that `?example=` names, else the first."""
    wanted = request.GET.get("example", "1")
    place = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 4 else 1
    chosen = version.examples[place - 1 : place] or version.examples[:1]
    return dict(chosen[0]["input"]) if chosen else None


def _compared(rows: list[CapabilityVersion], version: CapabilityVersion) -> list[dict[str, Any]]:
    """A version's changes to each file, as lines of `{kind, text}`."""
    before = next((row for row in rows if row.number < version.number), None)
    new, old = files_read(version.path), files_read(before.path) if before else dict.fromkeys(FILES, "")
    return [
        {"name": name, "lines": _lines(old[name], new[name])} for name in FILES if old[name] != new[name]
    ]


def _lines(old: str, new: str) -> list[dict[str, str]]:
    kinds = {"+": "add", "-": "del", "@": "place"}
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    lines = [{"kind": kinds.get(line[:1], "same"), "text": revealed(line)} for line in list(diff)[2:]]
    if len(lines) > MAX_DIFF_LINES:
        lines = [
            *lines[:MAX_DIFF_LINES],
            {"kind": "place", "text": f"… {len(lines) - MAX_DIFF_LINES} more lines"},
        ]
    return lines


MAX_COLOURED_CHARS = 100_000
"""A longer file is shown plain: colours would take too long."""


def coloured(name: str, text: str) -> SafeString:
    """The text of a file as HTML; Python has Pygments' short class names, everything else is escaped and no more."""
    if not name.endswith(".py") or len(text) > MAX_COLOURED_CHARS:
        return escape(text)
    from pygments import highlight  # takes a while to import
    from pygments.formatters import HtmlFormatter
    from pygments.lexers.python import PythonLexer

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    return mark_safe(highlight(text, lexer, HtmlFormatter(nowrap=True)))  # noqa: S308  it escapes
