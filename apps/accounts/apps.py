from datetime import timedelta

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"

    def ready(self) -> None:
        from apps.accounts.backends import attempts_prune
        from apps.accounts.secrets import check_secrets
        from apps.accounts.services import users_delete_pending
        from apps.core.health import register_check
        from apps.core.jobs.worker import register_sweep

        register_check("secrets", check_secrets)
        register_sweep("sign-in attempts", attempts_prune, timedelta(hours=6))
        register_sweep("accounts being deleted", users_delete_pending, timedelta(minutes=1))
