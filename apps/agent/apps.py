from django.apps import AppConfig


class AgentConfig(AppConfig):
    name = "apps.agent"
    label = "agent"

    def ready(self) -> None:
        from apps.agent import status
        from apps.agent.model import sdk
        from apps.agent.services import user_calls_thin
        from apps.agent.tools.base import register_tools
        from apps.agent.web.search import check_search, try_search
        from apps.agent.web.tools import warm_up as warm_up_web
        from apps.core.health import register_check
        from apps.core.registries import batch_deleters, choices, connection_tests, warmups

        register_tools("apps.agent.tools.builtin")
        register_tools("apps.agent.web.tools")
        register_check("model", status.check_model)
        register_check("web search", check_search)
        connection_tests.register("model", status.test_connection)
        connection_tests.register("web search", try_search)
        batch_deleters.register("agent", user_calls_thin)
        warmups.register("model", sdk.warm_up)
        warmups.register("web", warm_up_web)
        choices.register("tools", status.tool_choices)
        choices.register("tool_defaults", status.tool_defaults)
        choices.register("toolsets", status.toolset_choices)
        choices.register("models", status.model_choices)
