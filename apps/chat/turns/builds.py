"""Turns of Izzy's own, which say in a conversation how a build that it asked for has ended, or go on with what was wanted."""

from uuid import UUID

from apps.accounts.selectors import preferences_for
from apps.builder.builds.ending import reason_shown, stage_of
from apps.builder.builds.selectors import conversations_of
from apps.builder.models import Build, Kind, State
from apps.capabilities.catalog.selectors import secrets_missing
from apps.capabilities.models import CapabilityVersion, Execution, Trigger
from apps.capabilities.runs.execution import asked_by
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn
from apps.chat.turns.store import position_next
from apps.core.text import canonical_json

READY = "**{name}** is ready{version}. {description}"
WAITS = "**{name}** is built{version}, and waits for your approval: it asks to {request}. Approve it on the card above or on its page; then I test it.{beside}"
INCOMPLETE = "**{name}** is built{version}. It still needs {request}: add it on the card above, then I test it.{beside}"
FAILS = "**{name}** is built{version}, but failed its test. The card above says why, and lets you have it fixed.{beside}"
BESIDE = " Until then version {number} stays in use."
FAILED = "I could not build **{name}**. {reason}"
NOTICE = "<notice>\nFrom Izzy, not from the user: {text}\n</notice>"
GO_ON = (
    "The tool cap_{name}{became}. The user wishes you to go on by yourself: use it for what they had asked for, and answer. Do "
    "not ask for it to be built again."
)
BECAME = {
    Kind.NEW: ", which you had requested, is active now and among your tools",
    Kind.CHANGE: " has been changed as you had requested",
    Kind.REPAIR: ", which had failed, has been repaired",
}
NO_NEED = "The build of cap_{name} has ended. What follows has been reported to the user."


def build_announce(build: Build) -> None:
    """Queues a turn of Izzy's own that says how the build ended, or that goes on with what the user had asked for, in each
    conversation that asked for it.

    Called inside the transaction that ends the build. One that the user cancelled needs no word.
    """
    wanted = [] if build.state == State.CANCELLED else conversations_of(build)
    if not wanted:
        return
    words, usable = _words(build, _version(build))
    goes_on = usable and preferences_for(build.user_id).build_continue
    notice = (GO_ON if goes_on else NO_NEED).format(name=build.name, became=BECAME[Kind(build.kind)])
    for conversation in (
        Conversation.objects.for_user(build.user_id).filter(id__in=wanted).order_by("pk")
    ):
        turn = Turn.objects.create(
            user_id=build.user_id,
            conversation=conversation,
            position=position_next(conversation.id),
            by_izzy=True,
            said="" if goes_on else words,
        )
        Message.objects.create(
            user_id=build.user_id,
            conversation=conversation,
            turn=turn,
            position=turn.position,
            role=Role.USER,
            kind=MessageKind.NOTICE,
            blocks=canonical_json([{"type": "text", "text": NOTICE.format(text=notice)}]),
            speaker="izzy",
            indexed=True,
            captured=True,
        )


def build_announce_resolved(build: Build) -> None:
    """The same when the version of an earlier build has been tested at last: what it had asked for is allowed by now.

    Called inside the transaction that notes the test. Who has used it in a conversation meanwhile knows already.
    """
    version = _version(build)
    if version is None or stage_of(version) not in {"ready", "failing"}:
        return
    runs = Execution.objects.for_user(build.user_id).filter(
        capability_id=build.capability_id, version=version.number, trigger=Trigger.CHAT
    )
    if stage_of(version) == "failing" or not runs.exists():
        build_announce(build)


def _version(build: Build) -> CapabilityVersion | None:
    rows = CapabilityVersion.objects.for_user(build.user_id).select_related("capability__current")
    return rows.filter(capability_id=build.capability_id, number=build.version or 0).first()


def turn_words(user_id: UUID, turn_id: UUID) -> str:
    """The user's words in the turn."""
    said = Message.objects.for_user(user_id).filter(
        turn_id=turn_id, role=Role.USER, kind=MessageKind.TEXT
    )
    return said.values_list("text", flat=True).first() or ""


def _words(build: Build, version: CapabilityVersion | None) -> tuple[str, bool]:
    """The text for the user, and whether the tool can be used now."""
    if version is None:
        return FAILED.format(name=build.name, reason=reason_shown(build).partition("\n")[0]), False
    named = f" in version {version.number}" if version.number > 1 else ""
    current = version.capability.current
    beside = BESIDE.format(number=current.number) if current and current.number < version.number else ""
    match stage_of(version):
        case "approval":
            request = asked_by(version)
            return WAITS.format(name=build.name, version=named, request=request, beside=beside), False
        case "secrets" | "testing":
            request = ", ".join(
                f"the secret {name}" for name in secrets_missing(version.user_id, version.secrets)
            )
            request = request or "its test"
            return INCOMPLETE.format(
                name=build.name, version=named, request=request, beside=beside
            ), False
        case "failing":
            return FAILS.format(name=build.name, version=named, beside=beside), False
    return READY.format(name=build.name, version=named, description=version.description), True
