from datetime import timedelta

from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "apps.core"
    label = "core"

    def ready(self) -> None:
        from django.conf import settings
        from django.contrib.sessions.backends.db import SessionStore

        from apps.core import health, keys
        from apps.core.db.pool import database_file
        from apps.core.health import register_check
        from apps.core.integrity import machine, requests
        from apps.core.jobs import worker
        from apps.core.jobs.worker import register_sweep
        from apps.core.purging import remains
        from apps.core.purging.trace import purge_parts
        from apps.core.registries import account_deleters, batch_deleters

        register_check("database", health.check_database, essential=True)
        register_check("data directory", health.check_data_directory, essential=True)
        register_check("disk", health.check_disk)
        register_check("redis", health.check_redis, essential=True)
        register_check("worker", worker.check_worker)
        register_check("processes", health.check_processes)
        if database_file() is None:
            register_check("keys", keys.check_keys, essential=True)
        if settings.IZZY_FILES_URL:
            register_check("files", health.check_files)
        if settings.IZZY_OTEL_ENDPOINT:
            register_check("traces", health.check_traces)
        register_sweep("heartbeat", worker.beat, worker.HEARTBEAT_EVERY)
        register_sweep("purged from the disk", remains.sweep, timedelta(seconds=15))
        # By its name the first of them: once rows are gone nobody knows any more whose the log's entries were about.
        batch_deleters.register("admin's log", remains.admin_log_forget)
        account_deleters.register("admin's log and sessions", remains.account_forget)
        purge_parts.register("core", remains.PURGING)
        register_sweep("sessions", SessionStore.clear_expired, timedelta(hours=24))
        register_sweep("integrity checks", requests.sweep, timedelta(seconds=2))
        register_sweep("ended leases", machine.leases_clear, timedelta(minutes=5))
