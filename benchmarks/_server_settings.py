"""Izzy's settings with one more address, for the benchmark's comparison."""

from izzysite.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks._server_urls"
