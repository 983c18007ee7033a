"""`manage.py mcp --user NAME`: the MCP server over stdin and stdout, for a client that starts it."""

import asyncio
import os
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.gateway.mcp.callers import STDIO, Caller


class Command(BaseCommand):
    help = "Speaks MCP over stdin and stdout, as one user; what it logs goes to stderr."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, help="user name")
        parser.add_argument("--read-only", action="store_true", help="offer only what reads")
        parser.add_argument(
            "--reaches-out",
            action="store_true",
            help="capabilities that reach hosts or use secrets run unasked",
        )
        parser.add_argument(
            "--person-answers",
            action="store_true",
            help="a yes to what the client asks in its own dialogue counts as the user's",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        caller = Caller(
            user_id=user.pk,
            program=STDIO,
            may_write=not options["read_only"],
            reaches_out=options["reaches_out"],
            person_answers=options["person_answers"],
            base_url=settings.IZZY_PUBLIC_URL or f"http://{settings.IZZY_HOST}:{settings.IZZY_PORT}",
        )
        asyncio.run(serve(caller))


async def serve(caller: Caller) -> None:
    """Until stdin ends, or nobody reads stdout. On SIGTERM and Ctrl+C what runs is stopped first."""
    from mcp.server.stdio import stdio_server

    from apps.gateway.mcp.calling import calls_stop
    from apps.gateway.mcp.server import make_server

    async def find_caller(context: Any) -> Caller:
        return caller

    async def leave(code: int) -> None:
        await calls_stop()
        os._exit(code)  # the thread that reads stdin cannot be interrupted

    leaving: set[asyncio.Task[None]] = set()

    def told(code: int) -> None:
        leaving.add(asyncio.create_task(leave(code)))

    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        asyncio.get_running_loop().add_signal_handler(number, told, code)
    server = make_server(find_caller)
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client was killed: nobody reads any more
