"""A year of an invented person, to look at Izzy with: what `manage.py demo` puts in and takes out again."""
