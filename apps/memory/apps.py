from datetime import timedelta

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.agent.tools.registry import register_tools
        from apps.core.registries import purgers, stats_providers
        from apps.core.sweeps import register_sweep

        from . import selectors, services
        from .tools import NOTE_TOOLS

        register_tools(NOTE_TOOLS)
        register_sweep("memory_deleted_purge", sweep, every=timedelta(hours=1))
        purgers.register("memory", lambda user_id: services.user_forget(user_id=user_id))
        stats_providers.register("memory", selectors.memory_stats)


def sweep() -> None:
    """Erase the notes whose 30 days after deletion are over."""
    from . import services

    services.deleted_purge()
