"""`manage.py worker`: the background worker alone, as `serve` starts it."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.core.db.troubles import refuse_other_version
from apps.core.db.writing import refuse_unlocked
from apps.core.jobs.parent_watch import wait_at_gate, watch_parent
from apps.core.jobs.worker import run_worker, stand_back
from apps.core.keys import refuse_other_keys


class Command(BaseCommand):
    help = "Runs builds and periodic upkeep, which finds in the database what waits to be done."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        watch_parent()
        if not wait_at_gate():
            refuse_other_version()
        refuse_other_keys()
        refuse_unlocked()
        stand_back()
        # Here and not above: whoever asks for help need not load what builds need.
        from apps.builder.runner.pool import BuildThread

        run_worker(BuildThread())
