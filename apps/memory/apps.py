from datetime import timedelta

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.agent.tools.base import register_tools
        from apps.core.backups import named_files
        from apps.core.health import register_check
        from apps.core.jobs.worker import register_sweep
        from apps.core.metrics.queues import register_queue
        from apps.core.purging.trace import purge_parts
        from apps.core.registries import account_deleters, stats_providers

        from .capture import occasions, reader
        from .capture.selectors import capture_figures, check_capture, windows_due
        from .files.services import user_files_forget
        from .notes.changes import user_forget
        from .notes.joining import superseded_due
        from .notes.selectors import memory_stats
        from .purge import PURGING, deleted_purge, interrupted_resume
        from .quality import memory_quality
        from .summary import keeping
        from .transfer import groups, running, storage
        from .transfer.jobs import imports_open
        from .transfer.records import readers_load

        register_tools("apps.memory.tools")
        account_deleters.register("memory_files", user_files_forget)
        account_deleters.register("memory", user_forget)
        account_deleters.register("memory: imports", storage.user_uploads_forget)
        stats_providers.register("memory", memory_stats)
        stats_providers.register("memory_quality", memory_quality)
        stats_providers.register("capture", capture_figures)
        register_check("capture", check_capture)
        # Each runs by itself, so that none holds up another.
        register_sweep("capture", reader.sweep, every=reader.SWEEP_EVERY)
        register_sweep("occasions", occasions.occasions_check, every=occasions.CHECK_EVERY)
        register_sweep("memory_deleted_purge", deleted_purge, every=timedelta(hours=1))
        register_sweep("memory_purge_resume", interrupted_resume, every=timedelta(hours=1))
        register_sweep("memory_superseded", superseded_due, every=timedelta(minutes=10))
        register_sweep("memory_summaries", keeping.sweep, every=keeping.SWEEP_EVERY)
        register_sweep("imports", running.sweep, every=running.SWEEP_EVERY)
        register_sweep("imports: uploads", storage.uploads_prune, every=timedelta(hours=1))
        named_files.register("imports", storage.uploads_named)
        purge_parts.register("memory", PURGING)
        register_queue("capture", windows_due, since="due_at")
        register_queue("imports", imports_open, since="created_at")
        readers_load()
        groups.register()
