"""`izzy`, and `python -m izzy_cli`."""

import sys


def main() -> None:
    """The command line; a hook of a client, which waits for it, loads nothing that it does not need."""
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 3 and not sys.stdin.isatty():
        from izzy_cli.hooks import run

        if sys.argv[2] in run.CLIENTS:
            sys.exit(run.main(sys.argv[2]))
    from izzy_cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
