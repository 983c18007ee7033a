from datetime import timedelta

from django.apps import AppConfig


def proxy_warm_up() -> None:
    """Imported when it is called: httpx takes a while."""
    from apps.gateway.proxy.upstream import warm_up
    from apps.gateway.surfacing import indexes_warm_up

    warm_up()
    indexes_warm_up()


class GatewayConfig(AppConfig):
    name = "apps.gateway"
    label = "gateway"

    def ready(self) -> None:
        from apps.core.jobs.worker import register_sweep
        from apps.core.registries import batch_deleters, undecided, warmups
        from apps.gateway.hooks.services import unanswered_keep
        from apps.gateway.mcp import http
        from apps.gateway.mcp.approvals import calls_prune, calls_undecided
        from apps.gateway.proxy.ledger import spending_prune
        from apps.gateway.proxy.rows import turns_prune, user_turns_thin
        from apps.gateway.sessions import sessions_prune

        register_sweep("sessions of programs", sessions_prune, every=timedelta(hours=1))
        register_sweep("unanswered messages of programs", unanswered_keep, every=timedelta(minutes=10))
        register_sweep("calls of programs", calls_prune, every=timedelta(hours=1))
        register_sweep("turns of the proxy", turns_prune, every=timedelta(hours=1))
        register_sweep("what the proxy spent", spending_prune, every=timedelta(hours=6))
        batch_deleters.register("gateway", user_turns_thin)
        warmups.register("mcp", http.warm_up)
        warmups.register("proxy", proxy_warm_up)
        undecided.register("calls of programs", calls_undecided)
