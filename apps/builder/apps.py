from django.apps import AppConfig


class BuilderConfig(AppConfig):
    name = "apps.builder"
    label = "builder"

    def ready(self) -> None:
        from apps.builder.exporting import builds_export
        from apps.builder.runner.companion import builds_thread
        from apps.builder.selectors import builder_stats
        from apps.core.registries import companions, exporters, stats_providers

        companions.register("builds", builds_thread)
        exporters.register("builds", builds_export)
        stats_providers.register("builder", builder_stats)
