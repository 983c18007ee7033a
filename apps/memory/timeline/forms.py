"""The timeline's filters."""

from django import forms

from apps.memory.forms import SOURCES
from apps.memory.models import Kind

from .events import EventFilter

WHAT = [
    ("", "Everything"),
    ("saved", "Saved"),
    ("changed", "Changed"),
    ("replaced", "Replaced"),
    ("removed", "Archived or deleted"),
    ("restored", "Brought back"),
]


class EventForm(forms.Form):
    """A value that it does not know counts as not given."""

    what = forms.ChoiceField(label="What happened", required=False, choices=WHAT)
    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "All kinds"), *Kind.choices])
    source = forms.ChoiceField(label="Who did it", required=False, choices=[("", "By anybody"), *SOURCES])

    def wanted(self) -> EventFilter:
        self.is_valid()
        return EventFilter(**self.cleaned_data)
