"""`manage.py worker`: the background worker alone, as `serve` starts it."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.core.lifeline import hold_lifeline, wait_at_gate
from apps.core.worker import run_worker, stand_back


class Command(BaseCommand):
    help = "Runs builds and periodic upkeep, which finds in the database what waits to be done."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        hold_lifeline()
        wait_at_gate()
        stand_back()
        run_worker()
