from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.agent.tools.registry import register_tools
        from apps.core.health import register_check
        from apps.core.purging.places import purge_parts
        from apps.core.registries import account_deleters, stats_providers

        from . import selectors
        from .capture.selectors import capture_figures, check_capture
        from .files.services import user_files_forget
        from .notes.changes import user_forget
        from .pages.quality import memory_quality
        from .purge.services import PURGING
        from .sweeps import register_sweeps

        register_tools("apps.memory.tools")
        account_deleters.register("memory_files", lambda user_id: user_files_forget(user_id=user_id))
        account_deleters.register("memory", lambda user_id: user_forget(user_id=user_id))
        stats_providers.register("memory", selectors.memory_stats)
        stats_providers.register("memory_quality", memory_quality)
        stats_providers.register("capture", capture_figures)
        register_check("capture", check_capture)
        register_sweeps()
        purge_parts.register("memory", PURGING)
