from datetime import timedelta

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.core.registries import purgers
        from apps.core.sweeps import register_sweep

        from . import services

        register_sweep("memory_deleted_purge", sweep, every=timedelta(hours=1))
        purgers.register("memory", lambda user_id: services.user_forget(user_id=user_id))


def sweep() -> None:
    """Erase the notes whose 30 days after deletion are over."""
    from . import services

    services.deleted_purge()
