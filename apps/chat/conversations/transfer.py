"""The records of conversations, as an export has them and as other programs' files give them."""

from apps.agent.models import ToolCall
from apps.chat.attachments.records import attachment_rows, attachments_plan
from apps.chat.models import Attachment, Conversation, Folder, Message, Turn
from apps.core.transfer import RecordGroup, record_groups

from .documents import conversation_document, conversation_documents
from .folder_records import folder_rows, folders_plan
from .foreign import foreign_plan
from .records import conversation_rows
from .taking import conversations_plan


def register() -> None:
    """Called once, when the apps are ready."""
    record_groups.register(
        "folders",
        RecordGroup(
            rank=49,
            kinds=("folder",),
            plan=folders_plan,
            rows=folder_rows,
            tables={"folder": Folder},
        ),
    )
    record_groups.register(
        "conversations",
        RecordGroup(
            rank=50,
            kinds=("conversation", "turn", "message", "tool_call"),
            heads=("conversation",),
            plan=conversations_plan,
            rows=conversation_rows,
            documents=conversation_documents,
            document=conversation_document,
            tables={
                "conversation": Conversation,
                "turn": Turn,
                "message": Message,
                "tool_call": ToolCall,
            },
        ),
    )
    record_groups.register(
        "attachments",
        RecordGroup(
            rank=52,
            kinds=("attachment",),
            plan=attachments_plan,
            rows=attachment_rows,
            tables={"attachment": Attachment},
        ),
    )
    record_groups.register(
        "foreign conversations",
        RecordGroup(rank=51, kinds=("foreign_conversation",), plan=foreign_plan),
    )
