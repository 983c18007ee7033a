"""Users, what they prefer, their API tokens, and secrets encrypted at rest."""

from enum import StrEnum
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from apps.accounts.choices import (
    validate_approvals,
    validate_language,
    validate_speech_language,
    validate_time_zone,
    validate_toolsets,
)
from apps.core.ids import uuid7
from apps.core.models import UserOwned, choices_checked


class Scope(StrEnum):
    """Rights of an API token. Read, write and admin include each other in this order; proxy stands beside them."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    PROXY = "proxy"  # may spend the instance's model key through the Messages proxy


ORDERED_SCOPES = (Scope.READ, Scope.WRITE, Scope.ADMIN)


class User(AbstractUser):
    """Someone who talks with Izzy. The superuser runs the instance. Since `leaving_at` the account is being deleted: it is
    closed, and its rows go slice by slice."""

    instance_wide = True  # no user's rows

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    leaving_at = models.DateTimeField(null=True, blank=True, editable=False)


def default_toolsets() -> list[str]:
    return ["notes", "files", "web", "capabilities"]


class Review(models.TextChoices):
    """Which new memories wait for the user's review; what comes from untrusted sources always does."""

    EVERYTHING = "everything", "Everything that Izzy wants to remember"
    SENSITIVE = "sensitive", "Only what is sensitive or from elsewhere"
    NOTHING = "nothing", "Only what comes from elsewhere"


class BuildNetwork(models.TextChoices):
    """Whether the builder's sandbox may reach hosts on the internet."""

    ASK = "ask", "Ask me for each host"
    ANY = "any", "Any public host"
    NEVER = "never", "Never"


@choices_checked
class Preferences(models.Model):
    """How Izzy treats one user. `tool_approval` maps a tool's name to allow, ask or never; an empty `model` or
    `language` leaves the choice to the instance or to detection. `put_away` has the time at which a notice, by its name (`PUT_AWAY`), was put
    away.

    The `speech_…` ones are for voice: the language that is heard and spoken ("": the browser's), how fast answers are read (1: as the
    voice is), after how many seconds of silence what was dictated is sent (0: never by itself), whether the answer to what was spoken
    is read aloud by itself, and whether the model is asked to answer it shortly."""

    user = models.OneToOneField(
        User, on_delete=models.CASCADE, primary_key=True, related_name="preferences"
    )
    display_name = models.CharField(max_length=80, blank=True, default="")
    instructions = models.TextField(max_length=4000, blank=True, default="")
    time_zone = models.CharField(max_length=64, default="UTC", validators=[validate_time_zone])
    language = models.CharField(max_length=16, blank=True, default="", validators=[validate_language])
    toolsets = models.JSONField(default=default_toolsets, blank=True, validators=[validate_toolsets])
    tool_approval = models.JSONField(default=dict, blank=True, validators=[validate_approvals])
    model = models.CharField(max_length=120, blank=True, default="")
    use_memory = models.BooleanField(default=True)
    capture = models.BooleanField(default=True)
    review = models.CharField(max_length=16, choices=Review, default="sensitive")
    build_network = models.CharField(max_length=16, choices=BuildNetwork, default="ask")
    build_continue = models.BooleanField(default=False)
    speech_language = models.CharField(
        max_length=16, blank=True, default="", validators=[validate_speech_language]
    )
    speech_rate = models.FloatField(
        default=1.0, validators=[MinValueValidator(0.5), MaxValueValidator(2.0)]
    )
    speech_pause = models.PositiveSmallIntegerField(default=0, validators=[MaxValueValidator(10)])
    speech_read = models.BooleanField(default=True)
    speech_short = models.BooleanField(default=True)
    put_away = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class ProxyMemory(models.TextChoices):
    """Services of the Messages proxy for a token beside passing requests on."""

    BOTH = "both", "Bring up memories and remember what was said"
    INJECT = "inject", "Only bring up memories"
    CAPTURE = "capture", "Only remember what was said"
    NONE = "none", "Neither"


DAILY_TOKENS = 1_000_000
MAX_DAILY_TOKENS = 2_000_000_000


@choices_checked
class APIToken(UserOwned):
    """A bearer token for programs; only the SHA-256 of the secret is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=80)
    hint = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    # Over MCP: whether capabilities with hosts or secrets run unasked, and whether a yes that the client brings is a person's.
    reaches_out = models.BooleanField(default=False)
    person_answers = models.BooleanField(default=False)
    proxy_memory = models.CharField(max_length=8, choices=ProxyMemory, default=ProxyMemory.BOTH)
    # How many tokens of the instance's key it may spend in a day of UTC, where it has the scope proxy.
    proxy_daily_tokens = models.PositiveIntegerField(default=DAILY_TOKENS)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class Secret(models.Model):
    """A value encrypted with the instance's key; without a user it belongs to the instance."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    name = models.CharField(max_length=80)
    ciphertext = models.TextField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "name"], name="secret_of_user", condition=models.Q(user__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["name"], name="secret_of_instance", condition=models.Q(user__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SignInAttempt(models.Model):
    """A sign-in that has not succeeded; kept for a day, as keyed hashes of the name and the address."""

    instance_wide = True  # no user's rows

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name_hash = models.CharField(max_length=64)
    address_hash = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["name_hash", "at"], name="attempt_name"),
            models.Index(fields=["address_hash", "at"], name="attempt_address"),
        ]

    def __str__(self) -> str:
        return f"sign-in attempt at {self.at:%Y-%m-%d %H:%M}"
