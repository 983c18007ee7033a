"""The page *Data* of the settings: take everything out, bring something in, and what became of that."""

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS, NotFound
from apps.core.http.htmx import is_fragment
from apps.core.ids import parse_id
from apps.memory.models import Import
from apps.memory.transfer.jobs import AUTO, import_cancel, import_formats, import_get, imports_list
from apps.memory.transfer.requests import JSONL, TYPES, ImportInput, export_answer, import_brought

from .done import own_note
from .forms import ServiceForm

PAGE_SIZE = 10


class ImportForm(ServiceForm):
    """A file, or text that is pasted."""

    file = forms.FileField(
        label="File",
        required=False,
        help_text="An export of Izzy, ChatGPT, Claude or another program, as it came: a zip need not be unpacked.",
    )
    text = forms.CharField(
        label="Or paste it",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="For example what another assistant remembers of you, one memory a line.",
    )
    format = forms.ChoiceField(label="It comes from", required=False)
    own = forms.BooleanField(
        label="This is my own export",
        required=False,
        help_text="For Izzy's own files: memories keep where they came from and how far they are trusted. Tick it only for a "
        "file that you took out yourself.",
    )
    accept = forms.BooleanField(
        label="I know what it says, and it is right",
        required=False,
        help_text="Else its memories wait for your review, and count as others' words.",
    )
    dry_run = forms.BooleanField(
        label="Only try it",
        required=False,
        help_text="Says what would become of it, and changes nothing.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["format"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        known = [(name, title) for name, title, _ in import_formats()]
        field.choices = [(AUTO, "Find out by itself"), *known]


@require_http_methods(["GET", "POST"])
def data(request: SignedInRequest) -> HttpResponse:
    """The page; a POST brings in a file or text, or shows what is wrong with it (422)."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        given = {name: form.cleaned_data[name] for name in ("own", "accept", "dry_run")}
        chosen = form.cleaned_data["format"] or AUTO
        file, text = form.cleaned_data["file"], form.cleaned_data["text"].strip()
        body = {**given, "format": chosen, "text": "" if file else text}
        if form.accepted(
            lambda: import_brought(request.user.pk, ImportInput.read(body), file), REFUSALS
        ):
            return redirect(f"{reverse('memory:data')}#imports")
    page = Paginator(imports_list(request.user.pk), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"form": form, "page": page, "tab": "data", "nav": "settings", "formats": _titles()}
    context["known"] = [(title, about) for _, title, about in import_formats()]
    status = 422 if request.method == "POST" else 200
    return render(request, "memory/transfer/page.html", context, status=status)


@require_GET
def export(request: SignedInRequest) -> HttpResponseBase:
    """The file that is taken out; with `conversation` that one as Markdown, with `note` that one."""
    asked = request.GET.get("format", JSONL)
    chosen = {name: request.GET[name] for name in ("conversation", "note") if request.GET.get(name)}
    if asked not in TYPES:
        raise Http404("There is no such format.")
    try:
        ids = {name: parse_id(value) for name, value in chosen.items()}
        return export_answer(request.user.pk, asked, **ids)
    except NotFound as error:
        raise Http404(error.message) from error


@require_GET
@own_note
def one(request: SignedInRequest, import_id: Any) -> HttpResponse:
    """An import as it is now: the page asks again until it has ended."""
    job = import_get(request.user.pk, import_id)
    return _one(request, job) if is_fragment(request) else redirect("memory:data")


@require_POST
@own_note
def cancel(request: SignedInRequest, import_id: Any) -> HttpResponse:
    """Calls an import off."""
    try:
        job = import_cancel(user_id=request.user.pk, import_id=import_id)
    except REFUSALS:
        job = import_get(request.user.pk, import_id)
    return _one(request, job) if is_fragment(request) else redirect("memory:data")


def _one(request: SignedInRequest, job: Import) -> HttpResponse:
    return render(request, "memory/transfer/_import.html", {"job": job, "formats": _titles()})


def _titles() -> dict[str, str]:
    """The formats' names for people, by the names that rows have."""
    return {name: title for name, title, _ in import_formats()}
