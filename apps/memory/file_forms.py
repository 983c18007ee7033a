"""The form of the files page. What a file may be is checked by the services; the form carries texts to them."""

from typing import Any

from django import forms

from apps.core.errors import IzzyError

from .files.paths import ROOT
from .files.texts import MAX_FILE_CHARS
from .models import MAX_PATH_CHARS, MemoryFile

FIELD_OF = {"file_text": "content", "new_path": "path", "old_path": "path", "path": "path"}


class FileForm(forms.Form):
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

    def changes(self) -> dict[str, Any]:
        """What was entered, with the line breaks of files rather than those of browsers."""
        text = self.cleaned_data["content"].replace("\r\n", "\n")
        return {"path": self.cleaned_data["path"], "text": text}

    def add_failure(self, error: IzzyError) -> None:
        """Show an error of the service at its field."""
        self.add_error(FIELD_OF.get(str(error.extra.get("field", ""))), error.message)
