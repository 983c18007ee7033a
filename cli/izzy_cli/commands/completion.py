"""Completion of commands and options in the shell."""

import click

from izzy_cli.output import say

WHERE = {
    "bash": "izzy completion bash > ~/.local/share/bash-completion/completions/izzy",
    "zsh": "izzy completion zsh > a file named _izzy in a folder of $fpath",
    "fish": "izzy completion fish > ~/.config/fish/completions/izzy.fish",
}


@click.command(epilog="Where it goes: " + "; ".join(WHERE.values()))
@click.argument("shell", type=click.Choice(sorted(WHERE)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes izzy in a shell."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell  # noqa: S101  click has all three
    say(found(ctx.find_root().command, {}, "izzy", "_IZZY_COMPLETE").source())
