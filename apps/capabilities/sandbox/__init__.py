"""Sandboxes: where tools run. Nothing of a tool runs anywhere else."""

from .base import SandboxSpec as SandboxSpec
from .running import open_sandbox as open_sandbox
from .running import run_capability as run_capability
from .selection import current_backend as current_backend
