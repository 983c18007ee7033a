"""Why builds fail, in words for their users."""

from dataclasses import dataclass

from django.conf import settings

from apps.builder.models import Build, State
from apps.builder.services.ending import build_end

SMALLER = "You can try again at once, or ask for something smaller."
LIMITS = frozenset({"max_rounds", "timed_out", "too_many_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a build failed: `code` for programs, `reason` for the user."""

    code: str
    reason: str


def out_of_time() -> Failure:
    minutes = f"{settings.IZZY_BUILD_SECONDS / 60:.3g}"
    reason = f"It was not finished within {minutes} minutes (IZZY_BUILD_SECONDS). {SMALLER}"
    return Failure(code="timed_out", reason=reason)


def out_of_tokens() -> Failure:
    reason = f"It used up its {settings.IZZY_BUILD_TOKENS:,} tokens (IZZY_BUILD_TOKENS). {SMALLER}"
    return Failure(code="too_many_tokens", reason=reason)


def out_of_rounds(rounds: int) -> Failure:
    return Failure(code="max_rounds", reason=f"It was not finished within {rounds} rounds. {SMALLER}")


def build_failed(taken: Build, failure: Failure) -> None:
    """Ends the build as this process has taken it; nothing where another has taken it up meanwhile. What stopped at a limit
    names the last error as well."""
    build = Build.objects.unscoped().filter(pk=taken.pk, runner=taken.runner).first()
    if build is None:
        return
    reason = failure.reason
    if build.last_error and failure.code in LIMITS:
        reason = f"{reason}\nThe last error: {build.last_error}"
    build_end(build=build, state=State.FAILED, code=failure.code, reason=reason)
