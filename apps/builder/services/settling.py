"""Reports how a built version stands after its build, where that was reported."""

from django.db import transaction

from apps.builder import hooks
from apps.builder.completion import completion
from apps.builder.models import Build, MessageType, State
from apps.builder.services.queue import message_add
from apps.capabilities.models import CapabilityVersion


@transaction.atomic
def build_settled(version: CapabilityVersion) -> None:
    """Adds to the messages of the build that made the version how it stands now: approved, tested, failing. Nothing where
    it came from no build."""
    builds = Build.objects.for_user(version.user_id).filter(
        capability_id=version.capability_id, version=version.number, state=State.DONE
    )
    build = builds.order_by("-created_at").first()
    if build is None:
        return
    message_add(build=build, type=MessageType.COMPLETE, payload=completion(build, version))
    for _, listener in hooks.settled:
        listener(build)
