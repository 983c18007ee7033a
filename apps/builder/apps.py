from datetime import timedelta

from django.apps import AppConfig


class BuilderConfig(AppConfig):
    name = "apps.builder"
    label = "builder"

    def ready(self) -> None:
        from apps.agent.tools.base import register_tools
        from apps.builder.builds.ending import transcripts_prune, version_follow
        from apps.builder.builds.records import build_rows, builds_plan
        from apps.builder.builds.selectors import builder_stats, builds_queued, builds_running
        from apps.builder.models import Build
        from apps.capabilities.catalog import versions
        from apps.core.jobs.worker import register_sweep
        from apps.core.metrics.queues import register_queue
        from apps.core.registries import stats_providers
        from apps.core.transfer import RecordGroup, record_groups

        register_tools("apps.builder.tools")
        versions.version_resolved.register("builds", version_follow)
        record_groups.register(
            "builds",
            RecordGroup(
                rank=40,
                kinds=("build", "builder_message"),
                heads=("build",),
                whole=True,
                plan=builds_plan,
                rows=build_rows,
                tables={"build": Build},
            ),
        )
        stats_providers.register("builder", builder_stats)
        register_queue("builds", builds_queued, since="created_at")
        register_queue("builds under way", builds_running)
        register_sweep("builder: transcripts", transcripts_prune, every=timedelta(hours=1))
