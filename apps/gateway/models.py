"""Rows of the gateway: sessions that people hold with other programs, and calls of theirs that wait for a yes."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import APIToken
from apps.core.ids import uuid7
from apps.core.models import OrderedJSONField, UserOwned, choices_checked


@choices_checked
class ClientSession(UserOwned):
    """A session of another program, by that program's own name for it (`key`).

    `shown` are the notes that were brought up in it, `{id, text}` each; `conversation_id` is where what was said in it is kept.
    `prompts` are the user's messages there that wait for their answer, to be kept together with it, `{turn, text, at}` each. Since it
    is `tainted`, others' words were read in it.
    """

    class Surface(models.TextChoices):
        PROXY = "proxy", "Messages proxy"
        HOOK = "hook", "Hooks"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    token = models.ForeignKey(
        APIToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    surface = models.CharField(max_length=8, choices=Surface)
    client = models.CharField(max_length=64, blank=True, default="")
    key = models.CharField(max_length=200)
    conversation_id = models.UUIDField(null=True, blank=True)
    tainted = models.BooleanField(default=False)
    shown = models.JSONField(default=list, blank=True)
    prompts = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-updated_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "surface", "client", "key"], name="gateway_session_of_user"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["updated_at"], name="gateway_session_updated")]

    def __str__(self) -> str:
        return f"{self.get_surface_display()}: {self.client} {self.key[:20]}"


@choices_checked
class WaitingCall(UserOwned):
    """A tool call of a program that does not run before the user has allowed it; made again then, it runs.

    `reach` is what the call can get at (`Reach.to_json`), {} where only the user's settings ask. `digest` tells calls apart
    also where secrets were taken out of `input`.
    """

    class Decision(models.TextChoices):
        NONE = "", "none"
        ONCE = "once", "once"
        NO = "no", "no"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    program = models.CharField(max_length=40, help_text="The API token's id, or stdio.")
    client = models.CharField(max_length=64, blank=True, help_text="What the program calls itself.")
    tool = models.CharField(max_length=128)
    input = OrderedJSONField(default=dict)
    digest = models.CharField(max_length=64)
    reach = models.JSONField(default=dict, blank=True)
    reason = models.TextField(blank=True)
    decision = models.CharField(max_length=8, choices=Decision, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "program", "digest"], name="gateway_waiting_call_once"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["created_at"], name="gateway_waiting_created")]

    def __str__(self) -> str:
        return f"{self.tool} ({self.decision or 'waits'})"


class ProxyTurn(UserOwned):
    """A request that came through the Messages proxy: `block` was added to its newest user message, and is added to that message
    again in whatever comes later.

    `key` stands for the message within its session, `chain` for the system prompt and all messages up to it (only where the
    client does not name its session), `position` counts those messages. `reply_id` is the id of the answer. `shown` has an
    entry `{id, text}` for each line of the block; `surfaced` says that something to bring up was looked for.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(ClientSession, on_delete=models.CASCADE, related_name="turns")
    key = models.CharField(max_length=64)
    chain = models.CharField(max_length=64, blank=True, default="")
    position = models.PositiveIntegerField()
    block = models.TextField(blank=True, default="")
    shown = models.JSONField(default=list, blank=True)
    surfaced = models.BooleanField(default=False)
    reply_id = models.CharField(max_length=128, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "key"], name="gateway_turn_of_session")
        ]
        indexes: ClassVar = [
            models.Index(fields=["chain"], name="gateway_turn_chain", condition=~Q(chain="")),
            models.Index(fields=["reply_id"], name="gateway_turn_reply", condition=~Q(reply_id="")),
        ]

    def __str__(self) -> str:
        return f"message {self.position} of {self.session_id}"


class ProxySpending(UserOwned):
    """Tokens of the instance's model key that a token has used on one day (UTC)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    token = models.ForeignKey(APIToken, on_delete=models.CASCADE, related_name="+")
    day = models.DateField()
    tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-day"]
        verbose_name_plural = "proxy spending"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["token", "day"], name="gateway_spending_of_day")
        ]

    def __str__(self) -> str:
        return f"{self.tokens} on {self.day}"
