"""Describes a build that has succeeded: its version is ready, or waits for something, or fails its examples."""

from typing import Any, Literal, TypeAlias

from apps.builder.models import Build
from apps.capabilities.models import CapabilityVersion
from apps.capabilities.selectors import secrets_missing

Stage: TypeAlias = Literal["ready", "approval", "secrets", "testing", "failing"]
TEXTS: dict[Stage, str] = {
    "ready": "{name} is ready{version}.",
    "approval": "{name} is built{version} and waits for your approval.",
    "secrets": "{name} is built{version} and waits for a secret: {missing}.",
    "testing": "{name} is built{version} and is being tested.",
    "failing": "{name} is built{version}, but failed its test.",
}


def stage_of(version: CapabilityVersion) -> Stage:
    """How far a version of the builder's is: one that is not approved yet waits for that; then its examples are run, for
    which its secrets must be there."""
    if not version.is_approved:
        return "approval"
    if version.is_unproven:
        return "secrets" if secrets_missing(version.user_id, version.secrets) else "testing"
    return "failing" if version.test_failures else "ready"


def completion(build: Build, version: CapabilityVersion) -> dict[str, Any]:
    """The payload of a build's `complete` message."""
    stage = stage_of(version)
    missing = ", ".join(secrets_missing(version.user_id, version.secrets))
    numbered = f" in version {version.number}" if version.number > 1 else ""
    return {
        "text": TEXTS[stage].format(name=build.name, version=numbered, missing=missing),
        "stage": stage,
        "capability": build.name,
        "version": version.number,
        "waits_for_approval": stage == "approval",
        "verified": stage == "ready",
        "problem": str(version.test_failures[0]) if version.test_failures else "",
        "hosts": version.hosts,
        "secrets": version.secrets,
    }
