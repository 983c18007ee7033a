"""Forms of the pages of notes and files. What they may hold is checked by the services; forms carry texts to them."""

from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, ClassVar, Self, cast

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apps.core.addressing import addressed
from apps.core.http.forms import LinesField, PlainForm, in_list, listed
from apps.core.ids import uuid7
from apps.core.text import plain_breaks, truncated
from apps.memory.files.texts import MAX_FILE_CHARS, ROOT, clean_file_text, clean_path
from apps.memory.models import (
    MAX_PATH_CHARS,
    STANDING,
    Kind,
    Memory,
    MemoryFile,
    OccasionsBy,
    Origin,
    Status,
    Tier,
)
from apps.memory.notes.fields import (
    MAX_CATEGORY_CHARS,
    MAX_CONTENT_CHARS,
    clean_category,
    clean_content,
    clean_tags,
)
from apps.memory.occasions.phrases import clean_occasions

IMPORTANCE = [
    (1, "1 · trivial"),
    (2, "2 · minor"),
    (3, "3 · normal"),
    (4, "4 · important"),
    (5, "5 · vital"),
]

SOURCES = [
    (Origin.USER, "You"),
    (Origin.ASSISTANT, "Izzy, when asked"),
    (Origin.EXTRACTION, "Izzy, by itself"),
    (Origin.IMPORT, "An import"),
    (Origin.API, "A program (REST)"),
    (Origin.MCP, "A program (MCP)"),
    (Origin.FILE, "A file"),
]


class ServiceForm(PlainForm):
    """A form that shows what a service refuses."""

    field_of: ClassVar = {"file_text": "content", "new_path": "path", "old_path": "path"}


class EditForm(ServiceForm):
    """A form of something that may be changed elsewhere while the form is open: `present` is the text it has by now, and never
    gives way unseen. Where the text that was shown is left as it was, `cleaned_data` has no `content`."""

    present: str | None = None

    def of_text(self, present: str) -> Self:
        self.present = present
        self.fields["content"].show_hidden_initial = True
        return self

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        name = self.add_initial_prefix("content")
        shown, entered = self.data.get(name), given.get("content")
        if self.present is None or entered is None:
            return given
        present = plain_breaks(self.present)
        shown = present if shown is None else plain_breaks(shown)
        if entered == shown:
            del given["content"]
        elif present not in (shown, entered):
            entries = cast("QueryDict", self.data).copy()
            entries[name] = self.present  # shown now: saved again it gives way
            self.data = entries
            now = truncated(self.present, MAX_SHOWN_CHARS)
            self.add_error(
                "content", f"Changed elsewhere meanwhile. Save again to replace what is there: {now}"
            )
        return given


MAX_SHOWN_CHARS = 1000
NOTHING_WRITTEN = "Write something to remember."
OCCASIONS_HELP = "When Izzy should think of it: one situation in each line, eight at most."
OCCASIONS_MADE = {
    OccasionsBy.NONE: "Izzy has found none yet.",
    OccasionsBy.MODEL: "Izzy thought of these; with a new text it makes them anew.",
    OccasionsBy.RULES: "Izzy took these from a table; with a new text it makes them anew.",
    OccasionsBy.USER: "You wrote these; they stay as they are, also with a new text.",
}


SORTING = ("kind", "importance", "tier", "tags", "category")


class NoteForm(EditForm):
    """A note's text and what sorts it; `tags` are separated by commas, `occasions` stand in a line each."""

    checks: ClassVar = {
        "content": clean_content,
        "tags": lambda given: clean_tags(listed(given)),
        "category": clean_category,
        "occasions": lambda given: clean_occasions(_lines(given)),
    }

    content = LinesField(
        label="Memory",
        max_length=MAX_CONTENT_CHARS,
        widget=forms.Textarea(attrs={"rows": 3, "class": "input"}),
        error_messages={"required": NOTHING_WRITTEN},
    )
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.GENERAL, required=False)
    importance = forms.TypedChoiceField(
        choices=IMPORTANCE, coerce=int, initial=3, empty_value=None, required=False
    )
    tier = forms.ChoiceField(
        label="Kept",
        choices=[
            (tier, tier.label) for tier in (Tier.LONG_TERM, Tier.SHORT_TERM)
        ],  # the first is the default
        required=False,
    )
    tags = forms.CharField(required=False, widget=forms.TextInput(attrs={"placeholder": "food, health"}))
    category = forms.CharField(
        required=False,
        max_length=MAX_CATEGORY_CHARS,
        help_text=f"“{STANDING}”: borne in mind in every conversation.",
    )
    occasions = forms.CharField(
        label="When it matters",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "input"}),
        help_text=f"{OCCASIONS_HELP} Without any, Izzy thinks of some.",
        show_hidden_initial=True,  # what was shown: Izzy may have made others meanwhile
    )

    @classmethod
    def of(cls, note: Memory, entered: QueryDict | None = None) -> "NoteForm":
        """The form filled with a note, or with what was entered of it."""
        values: dict[str, Any] = {name: getattr(note, name, None) for name in cls.base_fields}
        values |= {"tags": in_list(note.tags), "occasions": "\n".join(note.occasions)}
        form = cls(entered, initial=values, prefix=str(note.pk)).of_text(note.content)
        form.fields["content"].widget.attrs["autofocus"] = True
        for name in SORTING:
            form.fields[name].show_hidden_initial = True
        form.fields[
            "occasions"
        ].help_text = f"{OCCASIONS_HELP} {OCCASIONS_MADE[OccasionsBy(note.occasions_by)]}"
        if note.occasions_by == OccasionsBy.USER:
            form.fields["occasions_anew"] = forms.BooleanField(
                label="Let Izzy find others in their place", required=False
            )
        if addressed(note.content) != note.content:
            form.fields["content"].help_text = "In the text that Izzy keeps you are “the user”."
        return form

    def changes(self) -> dict[str, Any]:
        """Entered values; a field that is left out of the request, or as it was shown, changes nothing."""
        given: dict[str, Any] = {
            name: value
            for name, value in self.cleaned_data.items()
            if self.add_prefix(name) in self.data and not (name in SORTING and self.as_shown(name))
        }
        if "tags" in given:
            given["tags"] = listed(given["tags"])
        occasions = _lines(given.pop("occasions", ""))
        if given.pop("occasions_anew", False):
            given["occasions"] = None
        elif occasions != _lines(self.data.get(self.add_initial_prefix("occasions"), "")):
            given["occasions"] = occasions
        for name in ("kind", "tier", "importance"):
            if not given.get(name):
                given.pop(name, None)
        return given


class NewNoteForm(NoteForm):
    """A note to be. It is sent again under the same `key` where the answer was lost."""

    key = forms.UUIDField(required=False, initial=uuid7, widget=forms.HiddenInput)


MINUTES = "%Y-%m-%dT%H:%M"


class MomentField(forms.DateTimeField):
    """A time to the minute in the user's time zone: of an hour that comes twice the first, unless it is left as it was shown."""

    def to_python(self, value: Any) -> datetime | None:
        try:
            return super().to_python(value)
        except forms.ValidationError as error:
            moment = parse_datetime(value.strip()) if error.code == "ambiguous_timezone" else None
            if moment is None:
                raise
            return timezone.make_aware(moment)

    def has_changed(self, initial: Any, data: Any) -> bool:
        shown = self.widget.format_value(self.prepare_value(initial)) if initial else None
        return (data or "") != (shown or "")


def _moment(label: str, help_text: str) -> MomentField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "class": "input"}, format=MINUTES)
    return MomentField(
        label=label, required=False, widget=widget, help_text=help_text, input_formats=[MINUTES]
    )


class ValidForm(ServiceForm):
    """Since when and until when a note holds, in the user's time zone; a field that is left as it is changes nothing."""

    valid_from = _moment("Holds from", "Empty: always, as far as is known.")
    valid_to = _moment("Holds until", "From then on it is not brought up any more.")

    @classmethod
    def of(cls, note: Memory, entered: QueryDict | None = None) -> "ValidForm":
        """The form filled with a note's times, or with what was entered of them."""
        kept = {name: getattr(note, name) for name in cls.base_fields}
        shown = {name: at and at.replace(second=0, microsecond=0) for name, at in kept.items()}
        return cls(entered, initial=shown)

    def changes(self) -> dict[str, Any]:
        """The values that were changed."""
        return {name: self.cleaned_data[name] for name in self.changed_data}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


LAST_DAY = date(8999, 12, 31)
"""Later ones, which stand for "for ever", count as this."""
_DAY = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


STATUSES: dict[str, str] = {Status.SUPERSEDED: "Replaced"}
"""Names of statuses for people, where these differ."""


class FilterForm(forms.Form):
    """The list's filters."""

    q = forms.CharField(required=False, max_length=1000)
    status = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Current"),
            *(
                (value, STATUSES.get(value, label))
                for value, label in Status.choices
                if value != Status.ACTIVE
            ),
        ],
    )
    kind = forms.ChoiceField(required=False, choices=[("", "All kinds"), *Kind.choices])
    tier = forms.ChoiceField(required=False, choices=[("", "Long and short term"), *Tier.choices])
    source = forms.ChoiceField(required=False, choices=[("", "Any source"), *SOURCES])
    trust = forms.ChoiceField(
        required=False,
        label="Whose words",
        choices=[
            ("", "Anybody’s words"),
            ("user", "Your words"),
            ("assistant", "Izzy’s words"),
            ("untrusted", "Others' words"),
        ],
    )
    since = forms.DateField(required=False, label="Saved from", widget=_DAY)
    until = forms.DateField(required=False, label="Saved until", widget=_DAY)
    as_of = forms.DateField(required=False, label="As of", widget=_DAY)
    tag = forms.CharField(required=False, max_length=50)
    category = forms.CharField(required=False, max_length=MAX_CATEGORY_CHARS)
    conversation = forms.UUIDField(required=False)
    ordering = forms.ChoiceField(
        required=False,
        choices=[
            ("-created_at", "Newest first"),
            ("created_at", "Oldest first"),
            ("-updated_at", "Changed lately"),
            ("-importance", "Most important"),
            ("-use_count", "Most used"),
            ("-priority", "Strongest"),
            ("priority", "Weakest"),
        ],
    )

    def clean(self) -> None:
        """Refuses days in the wrong order, of which nothing could ever come."""
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since > until:
            raise forms.ValidationError("“Saved from” is after “Saved until”: no memory can be both.")

    @property
    def not_heeded(self) -> list[str]:
        """The names of the fields whose value the form does not know, as people read them."""
        return [str(self[name].label) for name in self.errors if name in self.fields]

    def wanted(self) -> dict[str, Any]:
        """The fields of a `NoteFilter`; a day begins and ends where the user is. A value that is not known counts as not given."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        for name, days in (("since", 0), ("until", 1), ("as_of", 1)):
            if name in given:
                day = datetime.combine(min(given[name], LAST_DAY), time()) + timedelta(days=days)
                given[name] = timezone.make_aware(day)
        if "as_of" in given:  # what held as that day ended, whatever has become of it
            given["as_of"] -= timedelta(microseconds=1)
            given.pop("status", None)
        elif "conversation" not in given:  # all that came from it, whatever has become of them
            given.setdefault("status", str(Status.ACTIVE))
        return given

    @property
    def days(self) -> list[forms.BoundField]:
        """The fields that take a day."""
        return [self[name] for name in ("since", "until", "as_of")]

    @property
    def lists(self) -> list[forms.BoundField]:
        """The fields with a choice."""
        return [self[name] for name in ("status", "kind", "tier", "source", "trust", "ordering")]

    def narrowed(self) -> int:
        """How many of the lists are set to something of their own, the order among them."""
        lists = ("status", "kind", "tier", "source", "trust", "since", "until", "as_of", "ordering")
        return sum(bool(self[name].value()) and self[name].value() != "-created_at" for name in lists)


class FileForm(EditForm):
    """A file's path and content."""

    checks: ClassVar = {"path": clean_path, "content": partial(clean_file_text, field="Text")}

    path = forms.CharField(
        max_length=MAX_PATH_CHARS,
        widget=forms.TextInput(attrs={"class": "input", "placeholder": f"{ROOT}/projects.md"}),
        error_messages={"required": f"Give the file a path, such as {ROOT}/projects.md."},
    )
    content = LinesField(
        label="Text",
        required=False,
        strip=False,
        max_length=MAX_FILE_CHARS,
        widget=forms.Textarea(attrs={"rows": 12, "class": "input file-editor", "spellcheck": "false"}),
    )

    @classmethod
    def of(cls, file: MemoryFile, entered: QueryDict | None = None) -> "FileForm":
        """The form filled with a file, or with what was entered of it."""
        values = {"path": file.path, "content": file.content}
        form = cls(entered, initial=values, prefix=str(file.pk)).of_text(file.content)
        form.fields["path"].show_hidden_initial = True
        return form

    def clean_path(self) -> str:
        """A path that names no root is taken from `/memories` on."""
        path: str = self.cleaned_data["path"].strip()
        if path.startswith("/"):
            return path
        return f"{ROOT}/{path.removeprefix(ROOT[1:] + '/')}"

    def changes(self) -> dict[str, Any]:
        """Path and text; what was left as it was shown changes nothing."""
        given = {"text": self.cleaned_data.get("content")}
        return given if self.as_shown("path") else given | {"path": self.cleaned_data["path"]}
