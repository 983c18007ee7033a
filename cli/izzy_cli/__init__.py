"""The command line `izzy`: a client of an Izzy server over REST. It imports nothing of the server."""

__version__ = "0.1.0"
