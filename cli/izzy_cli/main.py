"""The command `izzy`. Each command's module is imported when that command is run, so that none waits for another's."""

import os
import sys
from importlib import import_module

import click

from izzy_cli import __version__
from izzy_cli.errors import Exit, Problem
from izzy_cli.output import note, plain, prepare_streams

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module below izzy_cli and the attribute in it that is the click command, first line of its help)
    "login": ("commands.account:login", "Sign in to an Izzy server with an API token."),
    "logout": ("commands.account:logout", "Forget the server and the token."),
    "status": (
        "commands.account:status",
        "Show which server, who you are there, and what the token may do.",
    ),
    "search": (
        "commands.search:search",
        "Search notes, conversations, files and capabilities by meaning and words.",
    ),
    "context": ("commands.search:context", "Print what a model should know before it answers."),
    "save": ("commands.notes:save", "Save a note."),
    "list": ("commands.notes:list_notes", "List notes."),
    "show": ("commands.notes:show", "Show a note, its history or its links."),
    "edit": ("commands.changes:edit", "Change a note: its fields by options, or all of it in $EDITOR."),
    "forget": (
        "commands.changes:forget",
        "Delete notes: out of search at once, and restorable for 30 days.",
    ),
    "restore": (
        "commands.changes:restore",
        "Bring back a deleted or archived note, or a former version.",
    ),
    "review": ("commands.review:review", "Decide on the notes that wait for you."),
    "ingest": ("commands.ingest:ingest", "Take in conversations from files or standard input."),
    "chat": ("commands.chat:chat", "Talk with Izzy."),
    "conversations": (
        "commands.chat:conversations",
        "List conversations, or those in which some words occur.",
    ),
    "capabilities": (
        "commands.capabilities:capabilities",
        "List capabilities, or those that fit some words.",
    ),
    "run": ("commands.capabilities:run", "Run a capability and print its result."),
    "builds": (
        "commands.builds:builds",
        "List builds of capabilities, follow them, and answer what they ask.",
    ),
    "export": (
        "commands.transfer:export",
        "Take out everything that Izzy keeps for you, or one conversation.",
    ),
    "import": ("commands.transfer:import_files", "Bring in an export of Izzy or of another program."),
    "imports": ("commands.transfer:imports", "List imports, or show, follow or cancel one."),
    "doctor": (
        "commands.doctor:doctor",
        "Check the server, the token, and what is installed into other programs.",
    ),
    "completion": ("commands.completion:completion", "Print the script that completes izzy in a shell."),
    "hook": ("hooks.command:hook", "Install Izzy into the hooks of coding agents."),
}
"""To add a command, add a line. A group is a command like any other; tests compare the help with the command's own."""


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"izzy_cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="izzy")
def cli() -> None:
    """Izzy, a self-hosted assistant that remembers, from the command line."""


def run(arguments: list[str]) -> int:
    """Run a command line; its exit code. What goes wrong is a sentence on standard error."""
    try:
        code = cli.main(args=arguments, prog_name="izzy", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else Exit.OK
    except Problem as problem:
        complain(problem.message)
        return problem.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.FAILURE
    except Exception as error:
        if os.environ.get("IZZY_TRACEBACK"):
            raise
        complain(f"This should not have happened: {type(error).__name__}. IZZY_TRACEBACK=1 shows where.")
        return Exit.FAILURE


def complain(message: str) -> None:
    """A sentence on standard error; never with a token in it."""
    token = os.environ.get("IZZY_TOKEN", "").strip()
    note(f"izzy: {plain(message.replace(token, '…') if token else message, one_line=True)}")


def main() -> None:
    prepare_streams()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # Python would flush once more and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
