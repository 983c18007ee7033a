"""`manage.py worker`: the background worker alone, as `serve` starts it."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.core.lifeline import hold_lifeline
from apps.core.worker import run_worker


class Command(BaseCommand):
    help = "Runs queued tasks and periodic upkeep."

    def handle(self, *args: Any, **options: Any) -> None:
        hold_lifeline()
        run_worker()
