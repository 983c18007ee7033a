"""System checks about the environment Izzy runs in (`manage.py check`, `manage.py doctor`)."""
