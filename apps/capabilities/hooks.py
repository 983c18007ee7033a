"""Through which apps further right learn of capabilities; filled in their `AppConfig.ready`."""

from collections.abc import Callable

from apps.capabilities.models import CapabilityVersion
from apps.core.registries import Registry

settled: Registry[Callable[[CapabilityVersion], None]] = Registry()
"""name -> fn(version), called inside the transaction in which a version of the assistant's is approved, or its examples
are run for the first time."""


def tell_settled(version: CapabilityVersion) -> None:
    """Calls all of them."""
    for _, listener in settled:
        listener(version)
