"""The form of a user's preferences."""

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.accounts.choices import (
    APPROVALS,
    LANGUAGES,
    SPEECH_LANGUAGES,
    SPEECH_PAUSES,
    SPEECH_RATES,
    offered,
    time_zones,
)
from apps.accounts.forms import ModelForm
from apps.accounts.models import BuildNetwork, Preferences, Review

SECTIONS = (
    (
        "You",
        "How Izzy treats you.",
        ("display_name", "instructions", "time_zone", "language", "model", "other_model"),
    ),
    (
        "Memory",
        "What Izzy remembers, and what it asks you about first.",
        ("use_memory", "capture", "review"),
    ),
    (
        "Capabilities and tools",
        "What Izzy may use and build for you.",
        ("toolsets", "build_network", "build_continue"),
    ),
    (
        "Voice",
        "Dictation and reading aloud, with what your browser has for it.",
        ("speech_language", "speech_rate", "speech_pause", "speech_read", "speech_short"),
    ),
)
"""The preferences as the page groups them: title, what it is about, names of the fields."""


class LongSelect(forms.Select):
    """Django renders each option with a template of its own: 600 take most of a page's time."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        options = [
            (option["value"], flatatt(option["attrs"]), option["label"])
            for option in self.options(name, [str(value)])
        ]
        return format_html(
            "<select{}>{}</select>",
            flatatt(self.build_attrs(self.attrs, {"name": name, **(attrs or {})})),
            format_html_join("\n", '<option value="{}"{}>{}</option>', options),
        )


class PreferencesForm(ModelForm):
    """Leaves alone what came back as it was shown: it may have been changed elsewhere while the page was open."""

    display_name = forms.CharField(
        label="What should Izzy call you?",
        max_length=80,
        required=False,
        help_text="Your user name if empty.",
    )
    instructions = forms.CharField(
        label="Instructions",
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="How Izzy should answer you: tone, length, what to keep in mind.",
    )
    time_zone = forms.ChoiceField(label="Time zone", choices=time_zones, widget=LongSelect)
    language = forms.ChoiceField(
        label="Language of your memories",
        choices=LANGUAGES,
        required=False,
        help_text="Used to find words in all their forms.",
    )
    use_memory = forms.BooleanField(
        label="Use memory in new conversations",
        required=False,
        help_text="Without it Izzy neither recalls nor saves anything in them.",
    )
    capture = forms.BooleanField(
        label="Remember by itself",
        required=False,
        help_text="Izzy reads what was said for what is worth remembering. Without it only what you or Izzy save "
        "during the conversation is kept, and what still waits to be read is dropped.",
    )
    build_network = forms.ChoiceField(
        label="Network while a capability is built",
        choices=BuildNetwork.choices,
        help_text="Which hosts Izzy may reach while building, and the finished capability with it. Packages can be installed in any case.",
    )
    build_continue = forms.BooleanField(
        label="Go on by itself after building",
        required=False,
        help_text="When a capability that you needed is ready, Izzy uses it for what you had asked, without another word from you.",
    )
    review = forms.ChoiceField(
        label="What waits for your review",
        choices=Review.choices,
        required=False,
        help_text="Before Izzy remembers it. What comes from pages, files or other people always waits.",
    )
    speech_language = forms.ChoiceField(
        label="Language spoken",
        choices=SPEECH_LANGUAGES,
        required=False,
        help_text="What Izzy listens for and reads in.",
    )
    speech_rate = forms.TypedChoiceField(
        label="How fast", choices=SPEECH_RATES, coerce=float, required=False
    )
    speech_pause = forms.TypedChoiceField(
        label="Send by itself what I dictate",
        choices=SPEECH_PAUSES,
        coerce=int,
        required=False,
        help_text="You see it coming: Escape or a key keeps the words in the field.",
    )
    speech_read = forms.BooleanField(
        label="Read aloud the answers to what I spoke",
        required=False,
        help_text="Sentence by sentence as they come, and what Izzy asks. What you typed is answered in silence.",
    )
    speech_short = forms.BooleanField(
        label="Short answers to what I spoke",
        required=False,
        help_text="Izzy answers what you spoke in a few sentences made for listening.",
    )
    toolsets = forms.MultipleChoiceField(
        label="Tools at hand", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, preferences: Preferences, **kwargs: Any) -> None:
        kwargs["initial"] = {name: getattr(preferences, name) for name in self.base_fields}
        super().__init__(*args, **kwargs)
        self.tools = offered("tools")
        self._approvals = preferences.tool_approval
        models, self.toolset_names = offered("models"), offered("toolsets")
        usual = f" ({models[0][0]})" if models else ""  # the first
        self.offer_models(own=preferences.model, without=f"What the instance uses{usual}")
        toolsets = self.fields["toolsets"]
        assert isinstance(toolsets, forms.MultipleChoiceField)  # noqa: S101  for the type checker
        toolsets.choices = self.toolset_names
        words, defaults = dict(APPROVALS), dict(offered("tool_defaults"))
        for name, label in self.tools:
            default = words.get(defaults.get(name, ""), "")
            self.fields[f"approval_{name}"] = forms.ChoiceField(
                label=label,
                choices=[("", f"Default: {default.lower()}" if default else "Default"), *APPROVALS],
                required=False,
                initial=preferences.tool_approval.get(name, ""),
                widget=forms.Select(attrs={"class": "input"}),
            )
        for field in self.fields.values():
            field.show_hidden_initial = True

    def changes(self) -> dict[str, Any]:
        """Input of `preferences_update`."""
        values = {field.name: self.cleaned_data[field.name] for field in self.general_fields()}
        values["review"] = values["review"] or str(Review.SENSITIVE)
        values["speech_rate"] = values["speech_rate"] or 1.0
        values["speech_pause"] = values["speech_pause"] or 0
        changed = {name: value for name, value in values.items() if not self.as_shown(name)}
        approvals = {f"approval_{name}": name for name, _ in self.tools}
        chosen = {
            name: self.cleaned_data[field]
            for field, name in approvals.items()
            if not self.as_shown(field)
        }
        approved = {name: value for name, value in (self._approvals | chosen).items() if value}
        return changed | {"tool_approval": approved}

    def general_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.base_fields if name != "toolsets" or self.toolset_names]

    def sections(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        """The fields as the page groups them: title, what it is about, fields."""
        shown = {field.name: field for field in [*self.general_fields(), self["other_model"]]}
        return [
            (title, about, [shown[name] for name in names if name in shown])
            for title, about, names in SECTIONS
        ]

    def approval_fields(self) -> list[forms.BoundField]:
        return [self[f"approval_{name}"] for name, _ in self.tools]

    def has_approvals(self) -> bool:
        """Whether anything differs from the default, or was refused: then the list is shown open."""
        return any(field.value() or field.errors for field in self.approval_fields())
