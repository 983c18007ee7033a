"""The builds page: what was built, how it went step by step, and asking for more."""

import json
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from apps.accounts.access import SignedInRequest
from apps.agent.models import ToolCall
from apps.builder.builds.requesting import MAX_FEEDBACK_CHARS, build_change, build_request
from apps.builder.builds.selectors import (
    build_get,
    build_seconds,
    build_usage,
    builds_for,
    transcript,
    waiting_for_user,
)
from apps.builder.models import Build, State
from apps.builder.runner.job import TOOLS
from apps.capabilities.catalog.drafts import NAME, clean_description, clean_name
from apps.capabilities.catalog.selectors import (
    capability_get,
    execution_get,
    executions_of,
    version_waiting,
)
from apps.capabilities.models import (
    MAX_DESCRIPTION_CHARS,
    MAX_NAME_CHARS,
    Capability,
    Execution,
    Trigger,
)
from apps.capabilities.pages.opened import own
from apps.capabilities.sandbox.base import SandboxUnavailable
from apps.capabilities.sandbox.running import current_backend
from apps.core.errors import IzzyError, NotFound
from apps.core.http.forms import PlainForm
from apps.core.ids import parse_id

PAGE_SIZE = 30
LAST = "last"
TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}
CODE_FIELDS = ("content", "code", "command")
"""These fields of an input are shown as what they are, an input without one as JSON."""


class NewBuildForm(PlainForm):
    """A new tool."""

    checks: ClassVar = {"name": clean_name, "description": clean_description}

    name = forms.CharField(
        label="Name",
        max_length=MAX_NAME_CHARS,
        help_text="Two or three words, such as tip calculator.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
        ),
    )
    description = forms.CharField(
        label="What should it do?",
        max_length=MAX_DESCRIPTION_CHARS,
        help_text="What it takes, what it gives, and where from. An example helps.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def clean_name(self) -> str:
        """As tools are called: nobody has to know that Tip calculator is tip_calculator."""
        return "_".join(str(self.cleaned_data["name"]).lower().replace("-", " ").split())


class ChangeForm(PlainForm):
    """A new version of a tool."""

    feedback = forms.CharField(
        label="What should it do differently?",
        max_length=MAX_FEEDBACK_CHARS,
        help_text="For example: return Fahrenheit as well.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class RepairForm(PlainForm):
    """A repair of a tool that failed."""

    feedback = forms.CharField(
        label="Anything that may help",
        max_length=MAX_FEEDBACK_CHARS,
        required=False,
        help_text="The builder gets the input and the error of the failed run.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


@require_GET
def builds(request: SignedInRequest) -> HttpResponse:
    """The user's builds, newest first."""
    state = request.GET.get("state", "")
    name = request.GET.get("name", "")
    name = name if NAME.fullmatch(name) else ""
    rows = builds_for(request.user.pk, state=state if state in State.values else "", name=name)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    waiting = waiting_for_user(request.user.pk, list(page))
    context = {
        "nav": "capabilities",
        "page": page,
        "rows": [
            {"build": row, "seconds": build_seconds(row), "waits": row.pk in waiting} for row in page
        ],
        "state": state,
        "name": name,
        "states": State.choices,
        "any": bool(page.paginator.count) or builds_for(request.user.pk).exists(),
    }
    return render(request, "builder/list.html", context)


@require_GET
@own
def build(request: SignedInRequest, build_id: str) -> HttpResponse:
    """One build: its card, what was asked for, and its transcript."""
    found = build_get(request.user.pk, build_id)
    schema = json.dumps(found.input_schema, indent=2, ensure_ascii=False)
    context = {"nav": "capabilities", "schema": schema, **_transcript(found)}
    return render(request, "builder/build.html", context)


@require_GET
@own
def steps(request: SignedInRequest, build_id: str) -> HttpResponse:
    """The transcript and the figures as they are now, for a page that watches."""
    found = build_get(request.user.pk, build_id)
    if request.headers.get("Sec-Fetch-Dest") == "document":  # its address was opened, and it is no page
        return redirect("builder:build", found.pk)
    return render(request, "builder/_transcript.html", _transcript(found))


@require_http_methods(["GET", "POST"])
@own
def new(request: SignedInRequest) -> HttpResponse:
    """Asks for a new tool, or with `?capability=` for a change to one, or for a repair with `&execution=` (a run's id, or
    `last`) or `&call=` (the tool call of a conversation in which it failed)."""
    capability, execution = _subject(request)
    kind: type[PlainForm] = (
        NewBuildForm if capability is None else RepairForm if execution is not None else ChangeForm
    )
    form = kind(request.POST if request.method == "POST" else None)
    if form.accepted(lambda: _request(request, form, capability, execution)):
        found = form.made
        return redirect("builder:build", build_id=found.pk) if found else redirect("builder:list")
    problem = ""
    try:
        current_backend()
    except SandboxUnavailable as error:
        problem = error.message
    context = {
        "nav": "capabilities",
        "form": form,
        "capability": capability,
        "execution": execution,
        "problem": problem,
    }
    return render(request, "builder/new.html", context, status=422 if form.is_bound else 200)


def _subject(request: SignedInRequest) -> tuple[Capability | None, Execution | None]:
    given = request.GET if request.method == "GET" else request.POST
    name, run, call = (given.get(field, "") for field in ("capability", "execution", "call"))
    if not name:
        return None, None
    capability = capability_get(request.user.pk, name)
    execution = None
    if run:
        execution = _run(capability, run)
    elif call:  # its row may have been removed since
        failed = executions_of(capability).filter(state=Execution.State.FAILED)
        execution = failed.filter(tool_call_id=parse_id(call)).first()
    if execution is not None and execution.capability_id != capability.pk:
        raise NotFound
    return capability, execution


def _run(capability: Capability, run: str) -> Execution | None:
    """The run with that id; for `last` the newest, where that one failed, else the newest failed one of a version whose
    examples fail."""
    if run != LAST:
        return execution_get(capability.user_id, run)
    ended = executions_of(capability).exclude(state=Execution.State.RUNNING)
    newest = ended.first()
    if newest and newest.state == Execution.State.FAILED:
        return newest
    failing = [
        row.number
        for row in (version_waiting(capability), capability.current)
        if row and row.test_failures
    ]
    return ended.filter(
        state=Execution.State.FAILED, trigger=Trigger.RETEST, version__in=failing
    ).first()


def _request(
    request: SignedInRequest,
    form: PlainForm,
    capability: Capability | None,
    execution: Execution | None,
) -> Build | None:
    values = form.cleaned_data
    if capability is not None:
        return build_change(
            user_id=request.user.pk,
            name=capability.name,
            feedback=values["feedback"],
            execution_id=execution.pk if execution else None,
        )
    requested = build_request(
        user_id=request.user.pk,
        name=values["name"],
        description=values["description"],
        input_schema={"type": "object", "properties": {}},
    )
    if requested.status == "active":
        form.add_error("name", "There is a capability of this name already. Open it to have it changed.")
        raise IzzyError("Choose another name.", field="name")
    return requested.build


def _transcript(build: Build) -> dict[str, Any]:
    usage = build_usage(build)
    return {
        "build": build,
        "usage": usage,
        "tokens": usage.input_tokens
        + usage.output_tokens
        + usage.cache_read_tokens
        + usage.cache_write_tokens,
        "seconds": build_seconds(build),
        "days": settings.IZZY_BUILD_TRANSCRIPT_DAYS,
        "rounds": [
            {"round": step.round, "text": step.text, "calls": [_call(call) for call in step.calls]}
            for step in transcript(build)
        ],
    }


def _call(call: ToolCall) -> dict[str, Any]:
    given = call.input if isinstance(call.input, dict) else {}
    code = next((str(given[field]) for field in CODE_FIELDS if field in given), None)
    shown = json.dumps(given, indent=2, ensure_ascii=False) if code is None else code
    tool = TOOLS_BY_NAME.get(call.name)
    about = [str(given[field]) for field in tool.shows if given.get(field)] if tool else []
    return {
        "name": tool.done if tool else call.name,
        "title": about[0][:120] if about else "",
        "input": shown,
        "result": call.result,
        "is_error": call.is_error,
        "open": call.is_open,
        "seconds": call.duration_ms / 1000,
    }
