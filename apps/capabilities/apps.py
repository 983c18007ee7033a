from datetime import timedelta

from django.apps import AppConfig


class CapabilitiesConfig(AppConfig):
    name = "apps.capabilities"
    label = "capabilities"

    def ready(self) -> None:
        from apps.agent.tools.base import register_family, register_tools
        from apps.capabilities.catalog import files, lifecycle
        from apps.capabilities.catalog.drafts import PREFIX
        from apps.capabilities.catalog.records import (
            capabilities_plan,
            capability_documents,
            capability_rows,
        )
        from apps.capabilities.catalog.selectors import capability_stats
        from apps.capabilities.models import Capability, CapabilityVersion
        from apps.capabilities.runs import examples, execution
        from apps.capabilities.runs.tools import tool_of_family
        from apps.capabilities.sandbox.e2b.backend import sweep_orphans
        from apps.capabilities.sandbox.layers.store import sweep, user_forget
        from apps.capabilities.sandbox.running import check_sandbox
        from apps.core.backups import named_files
        from apps.core.health import register_check
        from apps.core.jobs.worker import register_sweep
        from apps.core.purging.trace import PurgePart, purge_parts
        from apps.core.registries import account_deleters, stats_providers
        from apps.core.transfer import RecordGroup, record_groups

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
        record_groups.register(
            "capabilities",
            RecordGroup(
                rank=30,
                kinds=("capability", "capability_version"),
                heads=("capability",),
                whole=True,
                plan=capabilities_plan,
                rows=capability_rows,
                documents=capability_documents,
                tables={"capability": Capability, "capability_version": CapabilityVersion},
            ),
        )
        named_files.register(files.ROOT, files.files_named)
        stats_providers.register("capabilities", capability_stats)
        purge_parts.register("capabilities", PurgePart(counts=files.files_left))
