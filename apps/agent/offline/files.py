"""The rule about memory files."""

import re

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import Dialogue
from apps.agent.offline.file_words import file_command
from apps.agent.offline.intents import Intent
from apps.agent.offline.speech import Blocks, say, use


def file_work(dialogue: Dialogue, intent: Intent) -> Blocks:
    """Calls the tool, then says what it answered."""
    latest = dialogue.latest
    fields = file_command(intent.topic)
    if latest is None and fields is not None:
        return use(dialogue, "memory", fields) if "memory" in dialogue.tools else say(phrases.NO_TOOL)
    result = latest.result if latest is not None else ""
    first, _, rest = result.partition("\n")
    fence = "`" * (2 + max(map(len, re.findall("`+", rest)), default=1))
    return say(f"{first}\n\n{fence}text\n{rest}\n{fence}" if rest else first)
