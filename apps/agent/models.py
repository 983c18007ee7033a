"""Records of every call of a model and of a tool."""

from django.db import models
from django.utils import timezone

from apps.agent.tools.base import Tier
from apps.core.ids import uuid7
from apps.core.models import OrderedJSONField, UserOwned, choices_checked

SERVER_TIER = "server"
"""Tier of a call that the model's endpoint ran itself; its row is written when it has ended."""


@choices_checked
class ModelCall(UserOwned):
    """One request to a model: the line of the usage ledger.

    One that the offline responder answered has a row of the model `offline`, without tokens and cost.

    Conversation and turn belong to apps further right, so their ids are kept without a foreign key.
    """

    class Endpoint(models.TextChoices):
        ANTHROPIC = "anthropic"
        CUSTOM = "custom"
        OFFLINE = "offline"

    BY_A_MODEL = ~models.Q(endpoint=Endpoint.OFFLINE)  # what usage counts
    CANCELLED = "cancelled"  # the code of one that the user stopped, or that was no longer waited for

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation_id = models.UUIDField(null=True, blank=True)
    turn_id = models.UUIDField(null=True, blank=True)
    round = models.PositiveSmallIntegerField(default=0)
    purpose = models.CharField(max_length=32)
    model = models.CharField(max_length=128)
    endpoint = models.CharField(max_length=16, choices=Endpoint)
    input_tokens = models.PositiveIntegerField(
        default=0, help_text="Neither read from nor written to the cache."
    )
    output_tokens = models.PositiveIntegerField(default=0)
    cache_read_tokens = models.PositiveIntegerField(default=0)
    cache_write_tokens = models.PositiveIntegerField(default=0)
    latency_ms = models.PositiveIntegerField(default=0)
    first_token_ms = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    stop_reason = models.CharField(max_length=48, blank=True)
    error_code = models.CharField(max_length=48, blank=True)
    request_id = models.CharField(max_length=128, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["user", "created_at"], name="agent_modelcall_user_time"),
            models.Index(fields=["turn_id"], name="agent_modelcall_turn"),
            models.Index(fields=["conversation_id"], name="agent_modelcall_conversation"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose}: {self.model}"


@choices_checked
class ToolCall(UserOwned):
    """One call of a tool by the model. Input and result are scrubbed of secrets; the result is what the model got.

    The open calls of a turn are those not `done`. `position` is the place among the calls of its round.
    """

    class State(models.TextChoices):
        PENDING = "pending", "not begun"
        WAITING = "waiting", "waits for the user"
        RUNNING = "running", "running"
        DONE = "done", "done"

    class WaitsFor(models.TextChoices):
        NOTHING = "", "nothing"
        APPROVAL = "approval", "a decision"
        ANSWER = "answer", "an answer"

    class Decision(models.TextChoices):
        NONE = "", "none"
        APPROVED = "approved", "approved"
        DECLINED = "declined", "declined"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation_id = models.UUIDField(null=True, blank=True)
    turn_id = models.UUIDField(null=True, blank=True)
    round = models.PositiveSmallIntegerField()
    position = models.PositiveSmallIntegerField()
    tool_use_id = models.CharField(max_length=128, help_text="The model's own id of the call.")
    name = models.CharField(max_length=128)
    tier = models.CharField(
        max_length=16, choices=[(tier, tier) for tier in [*map(str, Tier), SERVER_TIER]], blank=True
    )
    input = OrderedJSONField(default=dict)
    state = models.CharField(max_length=16, choices=State, default=State.PENDING)
    waits_for = models.CharField(max_length=16, choices=WaitsFor, default=WaitsFor.NOTHING, blank=True)
    decision = models.CharField(max_length=16, choices=Decision, default=Decision.NONE, blank=True)
    permission = models.JSONField(
        default=dict, blank=True, help_text="What the user's yes allows beyond this call."
    )
    reach = models.JSONField(
        default=dict, blank=True, help_text="All that the user's yes lets it reach, see ToolGrant."
    )
    answer = models.TextField(blank=True)
    covered = models.CharField(
        max_length=16,
        blank=True,
        help_text="The lasting yes under which it ran: conversation or always.",
    )
    result = models.TextField(blank=True)
    is_error = models.BooleanField(default=False)
    untrusted = models.BooleanField(default=False, help_text="The result quotes what others wrote.")
    error_code = models.CharField(max_length=48, blank=True)
    build_id = models.CharField(max_length=64, blank=True)
    duration_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["turn_id", "round", "position"], name="agent_toolcall_place"
            ),
        ]
        indexes = [
            models.Index(fields=["user", "created_at"], name="agent_toolcall_user_time"),
            models.Index(fields=["conversation_id"], name="agent_toolcall_conversation"),
            # Asked for at every turn; the column itself stands behind long texts in its row.
            models.Index(
                fields=["conversation_id"],
                name="agent_toolcall_untrusted",
                condition=models.Q(untrusted=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    @property
    def is_open(self) -> bool:
        """Whether the model has no result of it yet."""
        return self.state != self.State.DONE


class ToolGrant(UserOwned):
    """A yes of the user that holds for every call of the same reach: in one conversation until `ends_at`, for one program,
    or everywhere."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation_id = models.UUIDField(null=True, blank=True)
    program = models.CharField(
        max_length=40, blank=True, default="", help_text="The API token's id, or stdio; empty: none."
    )
    reach = models.JSONField(
        help_text="{tool, hosts, secrets, capability, version}, as the card showed it."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        indexes = [models.Index(fields=["conversation_id"], name="agent_toolgrant_conversation")]

    def __str__(self) -> str:
        return str(self.reach["tool"])

    @property
    def label(self) -> str:
        """Its reach in words: the tool with its version, hosts and secrets."""
        name = str(self.reach["tool"]).removeprefix("cap_").replace("_", " ")
        version = f" {self.reach['version']}" if self.reach["version"] else ""
        return f"{name}{version} ({', '.join([*self.reach['hosts'], *self.reach['secrets']])})"
