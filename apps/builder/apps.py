from datetime import timedelta

from django.apps import AppConfig


class BuilderConfig(AppConfig):
    name = "apps.builder"
    label = "builder"

    def ready(self) -> None:
        from apps.agent.tools.base import register_tools
        from apps.builder.builds.ending import transcripts_prune, version_follow
        from apps.builder.builds.selectors import builder_stats
        from apps.builder.shapes import builds_export
        from apps.capabilities.catalog import lifecycle
        from apps.core.jobs.worker import register_sweep
        from apps.core.registries import exporters, stats_providers

        register_tools("apps.builder.tools")
        lifecycle.version_resolved.register("builds", version_follow)
        exporters.register("builds", builds_export)
        stats_providers.register("builder", builder_stats)
        register_sweep("builder: transcripts", transcripts_prune, every=timedelta(hours=1))
