from datetime import timedelta

from django.apps import AppConfig


class SearchConfig(AppConfig):
    name = "apps.search"
    label = "search"

    def ready(self) -> None:
        from django.core.checks import register

        from apps.core.db.copying import made_after
        from apps.core.health import IZZY, register_check
        from apps.core.jobs.worker import register_sweep
        from apps.core.metrics.queues import register_queue
        from apps.core.purging.trace import purge_parts
        from apps.core.registries import (
            account_deleters,
            batch_deleters,
            connection_tests,
            stats_providers,
            warmups,
        )
        from apps.search import filling, health, selectors, services
        from apps.search.backends.full_text import full_text_make

        register(health.known_weights, IZZY)
        register_check("search", health.check_embedder)
        register_sweep("search: vectors that wait", filling.sweep_vectors, timedelta(seconds=10))
        register_sweep("search: old deletions", filling.sweep_tombstones, timedelta(hours=6))
        connection_tests.register("embedder", health.connect_embedder)
        batch_deleters.register("search", lambda user_id: services.user_thin(user_id=user_id))
        account_deleters.register("search", lambda user_id: services.user_forget(user_id=user_id))
        stats_providers.register("search", selectors.user_figures)
        warmups.register("search", health.warm_up)
        made_after["full text"] = full_text_make
        purge_parts.register("search", services.PURGING)
        register_queue("passages to embed", filling.base_waiting)
        register_queue("passages for the encoder", filling.encoder_waiting)
