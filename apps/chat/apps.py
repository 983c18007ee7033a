from datetime import timedelta
from functools import partial

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "apps.chat"
    label = "chat"

    def ready(self) -> None:
        from apps.agent.tools.base import register_tools
        from apps.builder.builds import ending
        from apps.chat import purging
        from apps.chat.conversations import transfer
        from apps.chat.conversations.handover import (
            messages_capture_pending,
            messages_index_pending,
            messages_to_capture,
            messages_to_index,
        )
        from apps.chat.conversations.markdown import warm_up
        from apps.chat.conversations.selectors import chat_stats, conversation_belongs
        from apps.chat.conversations.services import (
            conversations_delete_pending,
            user_conversations_thin,
        )
        from apps.chat.models import TurnStatus
        from apps.chat.stream.events import events_prune
        from apps.chat.turns.builds import build_announce, build_announce_resolved, turn_words
        from apps.chat.turns.queue import turns_in, turns_interrupt
        from apps.core.jobs.worker import register_sweep
        from apps.core.metrics.queues import register_queue
        from apps.core.purging.trace import purge_parts
        from apps.core.registries import (
            batch_deleters,
            drains,
            owners,
            stats_providers,
            warmups,
            words,
        )

        register_tools("apps.chat.tools")
        register_queue("turns", partial(turns_in, TurnStatus.QUEUED), since="created_at")
        register_queue("turns under way", partial(turns_in, TurnStatus.RUNNING))
        register_queue("turns that wait for the user", partial(turns_in, TurnStatus.WAITING))
        register_queue("messages to index", messages_to_index, since="created_at", first="id")
        register_queue("messages to capture", messages_to_capture)
        ending.finished.register("chat", build_announce)
        ending.version_resolved.register("chat", build_announce_resolved)
        words.register("turn", turn_words)
        register_sweep("turns_interrupted", turns_interrupt, every=timedelta(seconds=10))
        register_sweep("messages_index_pending", messages_index_pending, every=timedelta(minutes=2))
        register_sweep("messages_capture_pending", messages_capture_pending, every=timedelta(minutes=1))
        register_sweep("turn_events_prune", events_prune, every=timedelta(hours=1))
        register_sweep(
            "conversations being deleted", conversations_delete_pending, every=timedelta(minutes=1)
        )
        batch_deleters.register("chat", user_conversations_thin)
        owners.register("conversation", conversation_belongs)
        warmups.register("markdown", warm_up)
        drains.register("chat", _turns_end)
        stats_providers.register("chat", chat_stats)
        purge_parts.register("chat", purging.PURGING)
        transfer.register()
        self._attachments_register()

    def _attachments_register(self) -> None:
        from apps.agent.selectors import UntrustedSource, untrusted_sources
        from apps.agent.tools.base import register_tools
        from apps.chat.attachments import files
        from apps.chat.attachments.services import attachments_prune, user_attachments_forget
        from apps.chat.conversations.selectors import attached_in, attached_turn
        from apps.core.backups import named_files
        from apps.core.jobs.worker import register_sweep
        from apps.core.registries import account_deleters

        register_tools("apps.chat.attachments.tools")
        untrusted_sources.register("attachments", UntrustedSource(attached_turn, attached_in))
        named_files.register(files.ROOT, files.files_named)
        account_deleters.register("attachments", user_attachments_forget)
        register_sweep("attachments that were not sent", attachments_prune, every=timedelta(hours=1))


async def _turns_end(seconds: float) -> None:
    """Has the turns of this event loop come to their end."""
    from apps.chat.turns.scheduler import scheduler  # which loads the agent: only the web process does

    await scheduler().drain(seconds)
