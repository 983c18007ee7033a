from datetime import timedelta

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "apps.gateway"
    label = "gateway"

    def ready(self) -> None:
        from apps.core.jobs.worker import register_sweep
        from apps.gateway.hooks.capture import unanswered_keep
        from apps.gateway.sessions import sessions_prune

        register_sweep("sessions of programs", sessions_prune, every=timedelta(hours=1))
        register_sweep("unanswered messages of programs", unanswered_keep, every=timedelta(minutes=10))
