"""The commands, by topic; izzy_cli.main imports each when it is run."""
