"""Forms of the accounts' pages. Services decide what is accepted; here is how it is asked for."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.contrib.auth.password_validation import validate_password
from django.core.validators import RegexValidator, URLValidator
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.choices import ANOTHER, offered
from apps.accounts.models import DAILY_TOKENS, MAX_DAILY_TOKENS, ProxyMemory, Scope, User
from apps.core.errors import Throttled
from apps.core.http.forms import PlainForm

PASSWORD_LENGTH = 128


def password_field(label: str, *, new: bool = False, help_text: str = "") -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password" if new else "current-password"})
    return forms.CharField(
        label=label, max_length=PASSWORD_LENGTH, strip=False, widget=widget, help_text=help_text
    )


def username_field(*, autocomplete: str = "username", autofocus: bool = True) -> UsernameField:
    """In one spelling (NFKC), as names are kept: who typed it so once is known by it."""
    attrs = {
        "autocomplete": autocomplete,
        "autocapitalize": "none",
        "autofocus": autofocus,
        "spellcheck": "false",
    }
    return UsernameField(label="User name", max_length=150, widget=forms.TextInput(attrs=attrs))


class CurrentPasswordForm(PlainForm):
    """Form that asks for the current password."""

    current = password_field("Your password, to confirm")

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_current(self) -> str:
        """Looked at as on the sign-in page, throttle included: whoever finds a browser open guesses no faster here."""
        current = str(self.cleaned_data["current"])
        name = self.request.user.get_username()
        try:
            known = authenticate(self.request, username=name, password=current)
        except Throttled as error:
            raise forms.ValidationError(error.message, code=error.code) from error
        if known is None:
            raise forms.ValidationError("That is not your current password.")
        return current


class PasswordForm(CurrentPasswordForm):
    """A new password. Where there are API tokens it also asks what becomes of them."""

    current = password_field("Current password")
    password = password_field(
        "New password", new=True, help_text="At least eight characters, not a common word."
    )
    revoke_tokens = forms.BooleanField(
        label="Revoke my API tokens too",
        required=False,
        initial=True,
        help_text="Programs that use them lose access at once. Keep them only if nobody else can have seen them.",
    )

    def __init__(self, *args: Any, tokens: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not tokens:
            del self.fields["revoke_tokens"]


class TokenForm(PlainForm):
    LIFETIMES = [("", "Never"), ("7", "In a week"), ("30", "In 30 days"), ("365", "In a year")]
    FIRST = ("name", "scope", "lifetime")  # what every token is asked for

    name = forms.CharField(
        label="Name", max_length=80, help_text="What it is for, for example “laptop”."
    )
    scope = forms.ChoiceField(label="Access", choices=[])
    lifetime = forms.ChoiceField(label="Expires", choices=LIFETIMES, required=False)
    reaches_out = forms.BooleanField(
        label="Run what reaches out",
        required=False,
        help_text="Over MCP, capabilities that reach hosts or use your secrets run without asking you. Else each waits for "
        "your yes on a page of Izzy.",
    )
    person_answers = forms.BooleanField(
        label="A person answers there",
        required=False,
        help_text="What the program asks in a dialogue of its own is asked to you: a yes there counts as yours.",
    )
    proxy_memory = forms.ChoiceField(
        label="Memory in the Messages proxy",
        choices=ProxyMemory,
        initial=ProxyMemory.BOTH,
        required=False,
    )
    proxy = forms.BooleanField(
        label="Use this instance's model key",
        required=False,
        help_text="Programs that come to the Messages proxy without a key of their own use the one of this instance.",
    )
    proxy_daily_tokens = forms.IntegerField(
        label="Tokens of that key in a day",
        min_value=1,
        max_value=MAX_DAILY_TOKENS,
        initial=DAILY_TOKENS,
        required=False,
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = [(str(Scope.READ), "Read"), (str(Scope.WRITE), "Read and write")]
        if user.is_superuser:
            scopes.append((str(Scope.ADMIN), "Everything, the instance included"))
        field = self.fields["scope"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  for the type checker
        field.choices = scopes
        field.initial = str(Scope.WRITE)

    def first_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name in self.FIRST]

    def further_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in self.FIRST]

    def values(self) -> dict[str, Any]:
        """Arguments of `token_create` but the user."""
        days = self.cleaned_data["lifetime"]
        expires_at = timezone.now() + timedelta(days=int(days)) if days else None
        return {
            "name": self.cleaned_data["name"],
            "scopes": [
                self.cleaned_data["scope"],
                *([str(Scope.PROXY)] if self.cleaned_data["proxy"] else []),
            ],
            "expires_at": expires_at,
            "reaches_out": self.cleaned_data["reaches_out"],
            "person_answers": self.cleaned_data["person_answers"],
            "proxy_memory": self.cleaned_data["proxy_memory"] or ProxyMemory.BOTH,
            "proxy_daily_tokens": self.cleaned_data["proxy_daily_tokens"] or DAILY_TOKENS,
        }


class SignInForm(AuthenticationForm):
    """Django's form; too many attempts are named as what they are."""

    username = username_field()
    password = password_field("Password")
    error_messages = {
        "invalid_login": "User name or password is wrong. Mind capital and small letters.",
        "inactive": "This account is blocked.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
        if self.data.get("username"):
            # The cursor and the error on the password, which most likely was refused.
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs |= {
                "autofocus": True,
                "aria-describedby": "form-errors",
            }

    def clean(self) -> dict[str, Any]:
        try:
            return super().clean()
        except Throttled as error:
            raise forms.ValidationError(error.message, code=error.code) from error


class SetupForm(PlainForm):
    token = forms.CharField(
        label="Set-up code",
        max_length=200,
        help_text="The part after # of the link that Izzy printed when it started.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "data-setup-token": ""}
        ),
    )
    username = username_field()
    password = password_field(
        "Password", new=True, help_text="At least eight characters, not a common word."
    )
    time_zone = forms.CharField(
        max_length=64, required=False, widget=forms.HiddenInput(attrs={"data-time-zone": ""})
    )

    def clean(self) -> dict[str, Any]:
        """Looks at name and password both, so that what is wrong with either is said at once."""
        given = super().clean()
        name, secret = given.get("username"), given.get("password")
        if name:
            try:
                User._meta.get_field("username").run_validators(name)
            except forms.ValidationError as error:
                self.add_error("username", error)
        if secret:
            try:
                validate_password(secret, User(username=name or ""))
            except forms.ValidationError as error:
                self.add_error("password", error)
        return given


class NewUserForm(PlainForm):
    username = username_field(autocomplete="off", autofocus=False)  # it is somebody else's
    superuser = forms.BooleanField(
        label="Superuser", required=False, help_text="May manage users, the instance and the admin."
    )


class InstanceForm(PlainForm):
    anthropic_api_key = forms.CharField(
        label="Anthropic API key",
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        validators=[
            RegexValidator(r"\A[!-~]+\Z", "A key has letters, digits and signs only, no spaces.")
        ],
        help_text="Empty: leave what is stored as it is.",
    )
    forget_key = forms.BooleanField(label="Remove the stored key", required=False)
    anthropic_base_url = forms.CharField(
        label="Base URL",
        required=False,
        max_length=500,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text="Any server that speaks the Messages API. Empty: Anthropic's own.",
    )


class ModelForm(PlainForm):
    """A form with the field `model`; whoever makes it calls `offer_models`. A list of models is a help, not a limit:
    servers of one's own have models of their own, which are entered in `other_model`."""

    model = forms.CharField(label="Model", max_length=120, required=False, widget=forms.Select)

    def offer_models(self, *, own: str, without: str) -> None:
        """The choices: `without` a model of one's own, those that are known, `own` whatever it is, and another."""
        known = [(value, label) for value, label in offered("models") if value]
        if own not in {"", *dict(known)}:
            known.append((own, own))
        self.fields["model"].widget = forms.Select(
            attrs={"class": "input own-model"},
            choices=[("", without), *known, (ANOTHER, "Another…")],
        )
        self.fields["other_model"] = forms.CharField(
            label="Its name",
            max_length=self.fields["model"].max_length,  # type: ignore[attr-defined]  # a CharField
            required=False,
            help_text="As the server of the models calls it.",
            widget=forms.TextInput(
                attrs={"class": "input", "autocomplete": "off", "spellcheck": "false"}
            ),
        )

    def clean(self) -> dict[str, Any]:
        """`model` is the name that was entered, where another was chosen."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("model") == ANOTHER and "other_model" in cleaned:
            cleaned["model"] = cleaned["other_model"].strip()
            if not cleaned["model"]:
                self.add_error("other_model", "Give the name of the model.")
        return cleaned
