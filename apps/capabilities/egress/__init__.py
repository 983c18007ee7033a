"""The only way out of a sandbox: an HTTP proxy that lets approved names through and nothing else."""

from .proxy import EgressProxy as EgressProxy
