from django.apps import AppConfig


class CapabilitiesConfig(AppConfig):
    name = "apps.capabilities"
    label = "capabilities"

    def ready(self) -> None:
        from apps.core.health import register_check

        from .sandbox.health import check_sandbox

        register_check("sandbox", check_sandbox)
