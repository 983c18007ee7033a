from datetime import timedelta

from django.apps import AppConfig


class CapabilitiesConfig(AppConfig):
    name = "apps.capabilities"
    label = "capabilities"

    def ready(self) -> None:
        from apps.agent.tools.base import register_family, register_tools
        from apps.capabilities.catalog import files, lifecycle
        from apps.capabilities.catalog.archives import capabilities_export
        from apps.capabilities.catalog.names import PREFIX
        from apps.capabilities.catalog.selectors import capability_stats
        from apps.capabilities.runs import examples, execution
        from apps.capabilities.runs.tools import tool_of_family
        from apps.capabilities.sandbox.e2b.backend import sweep_orphans
        from apps.capabilities.sandbox.layers.store import sweep, user_forget
        from apps.capabilities.sandbox.running import check_sandbox
        from apps.core.health import register_check
        from apps.core.jobs.worker import register_sweep
        from apps.core.purging.places import PurgePart, purge_parts
        from apps.core.registries import account_deleters, exporters, stats_providers

        register_tools("apps.capabilities.runs.tools")
        register_family(PREFIX, tool_of_family)
        register_check("sandbox", check_sandbox)
        register_sweep("capabilities: runs", execution.executions_prune, every=timedelta(minutes=15))
        register_sweep(
            "capabilities: lost runs", execution.executions_interrupt, every=timedelta(seconds=10)
        )
        register_sweep("capabilities: acceptance tests", examples.sweep, every=examples.SWEEP_EVERY)
        register_sweep("capabilities: sandboxes", sweep, every=timedelta(minutes=5))
        register_sweep("capabilities: e2b", sweep_orphans, every=timedelta(minutes=10))
        account_deleters.register("capabilities: requirements", user_forget)
        account_deleters.register("capabilities", lambda user_id: lifecycle.user_forget(user_id=user_id))
        exporters.register("capabilities", capabilities_export)
        stats_providers.register("capabilities", capability_stats)
        purge_parts.register("capabilities", PurgePart(counts={"capabilities.files": files.files_left}))
