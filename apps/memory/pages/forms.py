"""Forms of the pages of notes and files. What they may hold is checked by the services; forms carry texts to them."""

from typing import Any

from django import forms

from apps.core.errors import IzzyError
from apps.memory.addressing import addressed
from apps.memory.files.texts import MAX_FILE_CHARS, ROOT
from apps.memory.models import MAX_PATH_CHARS, STANDING, Kind, Memory, MemoryFile, Origin, Status, Tier
from apps.memory.notes.fields import MAX_CATEGORY_CHARS, MAX_CONTENT_CHARS

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


class ServiceForm(forms.Form):
    """A form that shows what a service refuses."""

    def add_failure(self, error: IzzyError) -> None:
        """Show an error of the service at its field, which may be called otherwise here."""
        name = str(error.extra.get("field", ""))
        field = {"file_text": "content", "new_path": "path", "old_path": "path"}.get(name, name)
        self.add_error(field if field in self.fields else None, error.message)


class NoteForm(ServiceForm):
    """A note's text and what sorts it; `tags` are separated by commas."""

    content = forms.CharField(
        label="Note",
        max_length=MAX_CONTENT_CHARS,
        widget=forms.Textarea(attrs={"rows": 3, "class": "input"}),
        error_messages={"required": "Write something to remember."},
    )
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.GENERAL, required=False)
    importance = forms.TypedChoiceField(
        choices=IMPORTANCE, coerce=int, initial=3, empty_value=None, required=False
    )
    tier = forms.ChoiceField(
        label="Kept",
        choices=[(Tier.LONG_TERM, "for long"), (Tier.SHORT_TERM, "for a while")],
        required=False,
    )
    tags = forms.CharField(required=False, widget=forms.TextInput(attrs={"placeholder": "food, health"}))
    category = forms.CharField(
        required=False,
        max_length=MAX_CATEGORY_CHARS,
        help_text=f"In “{STANDING}” it is borne in mind in every conversation.",
    )

    @classmethod
    def of(cls, note: Memory) -> "NoteForm":
        """The form filled with a note."""
        values: dict[str, Any] = {name: getattr(note, name) for name in cls.base_fields}
        form = cls(initial={**values, "tags": ", ".join(note.tags)}, prefix=str(note.pk))
        form.fields["content"].widget.attrs["autofocus"] = True
        if addressed(note.content) != note.content:
            form.fields["content"].help_text = "In the text that Izzy keeps you are “the user”."
        return form

    def changes(self) -> dict[str, Any]:
        """Entered values; a field left out of the request changes nothing."""
        given: dict[str, Any] = {
            name: value
            for name, value in self.cleaned_data.items()
            if self.add_prefix(name) in self.data
        }
        if "tags" in given:
            given["tags"] = [tag.strip() for tag in given["tags"].split(",") if tag.strip()]
        for name in ("kind", "tier", "importance"):
            if not given.get(name):
                given.pop(name, None)
        return given


class FilterForm(forms.Form):
    """The list's filters."""

    q = forms.CharField(required=False, max_length=1000)
    status = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Current"),
            *((value, label) for value, label in Status.choices if value != Status.ACTIVE),
        ],
    )
    kind = forms.ChoiceField(required=False, choices=[("", "All kinds"), *Kind.choices])
    tier = forms.ChoiceField(required=False, choices=[("", "Long and short term"), *Tier.choices])
    source = forms.ChoiceField(required=False, choices=[("", "Any source"), *SOURCES])
    tag = forms.CharField(required=False, max_length=50)
    category = forms.CharField(required=False, max_length=MAX_CATEGORY_CHARS)
    ordering = forms.ChoiceField(
        required=False,
        choices=[
            ("-created_at", "Newest first"),
            ("created_at", "Oldest first"),
            ("-updated_at", "Changed lately"),
            ("-importance", "Most important"),
            ("-access_count", "Most used"),
            ("-priority", "Strongest"),
            ("priority", "Weakest"),
        ],
    )

    def narrowed(self) -> int:
        """How many of the lists are set to something of their own, the order among them."""
        lists = ("status", "kind", "tier", "source", "ordering")
        return sum(bool(self[name].value()) and self[name].value() != "-created_at" for name in lists)


class FileForm(ServiceForm):
    """A file's path and content."""

    path = forms.CharField(
        max_length=MAX_PATH_CHARS,
        widget=forms.TextInput(attrs={"class": "input", "placeholder": f"{ROOT}/projects.md"}),
        error_messages={"required": f"Give the file a path, such as {ROOT}/projects.md."},
    )
    content = forms.CharField(
        label="Text",
        required=False,
        strip=False,
        max_length=MAX_FILE_CHARS,
        widget=forms.Textarea(attrs={"rows": 12, "class": "input file-editor", "spellcheck": "false"}),
    )

    @classmethod
    def of(cls, file: MemoryFile) -> "FileForm":
        """The form filled with a file."""
        return cls(initial={"path": file.path, "content": file.content}, prefix=str(file.pk))

    def clean_path(self) -> str:
        """A path that names no root is taken from `/memories` on."""
        path: str = self.cleaned_data["path"].strip()
        if path.startswith("/"):
            return path
        return f"{ROOT}/{path.removeprefix(ROOT[1:] + '/')}"

    def changes(self) -> dict[str, Any]:
        """Path and text, with the line breaks of files rather than those of browsers."""
        text = self.cleaned_data["content"].replace("\r\n", "\n")
        return {"path": self.cleaned_data["path"], "text": text}
