"""`python -m izzy_cli` is `izzy`."""

from izzy_cli.main import main

main()
