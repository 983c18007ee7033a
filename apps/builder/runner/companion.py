"""What the worker starts; its imports come with it, in the worker alone."""

from apps.core.registries import Companion


def builds_thread() -> Companion:
    """A new thread for builds, not started yet."""
    from apps.builder.runner.thread import BuildThread

    return BuildThread()
