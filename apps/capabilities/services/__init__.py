"""Writes of the catalog: each keyword-only, in one transaction."""

from .approval import capability_approve
from .creation import capability_begin, capability_create, capability_rebuild
from .lifecycle import (
    capability_delete,
    capability_disable,
    capability_enable,
    capability_fail,
    capability_rollback,
    user_forget,
    version_delete,
)
from .runs import (
    execution_begin,
    execution_discard,
    execution_finish,
    executions_interrupt,
    executions_prune,
)
from .secrets import user_secret_delete, user_secret_set
from .testing import version_tested
from .versions import capability_update, version_add

__all__ = [
    "capability_approve",
    "capability_begin",
    "capability_create",
    "capability_delete",
    "capability_disable",
    "capability_enable",
    "capability_fail",
    "capability_rebuild",
    "capability_rollback",
    "capability_update",
    "execution_begin",
    "execution_discard",
    "execution_finish",
    "executions_interrupt",
    "executions_prune",
    "user_forget",
    "user_secret_delete",
    "user_secret_set",
    "version_add",
    "version_delete",
    "version_tested",
]
