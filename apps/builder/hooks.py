"""Through which apps further right learn of builds; filled in their `AppConfig.ready`."""

from collections.abc import Callable

from apps.builder.models import Build
from apps.core.registries import Registry

finished: Registry[Callable[[Build], None]] = Registry()
"""name -> fn(build), called inside the transaction that ends a build (done, failed or cancelled)."""

settled: Registry[Callable[[Build], None]] = Registry()
"""name -> fn(build), called inside the transaction in which the version of a build that is done was approved or tested."""
