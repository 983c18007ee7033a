"""The rules: what the offline model answers, given the user's words and what its tool calls brought so far."""

from collections.abc import Callable
from typing import Any

from apps.agent.offline import capabilities, files, notes, phrases, talks
from apps.agent.offline.dialogue import Dialogue, read_dialogue
from apps.agent.offline.intents import Intent, Kind, intent_of
from apps.agent.offline.rehearsals import building, using
from apps.agent.offline.speech import Blocks, say
from apps.agent.services import DECLINED

__all__ = ["Blocks", "respond"]


def respond(request: dict[str, Any]) -> Blocks:
    """The content blocks that answer a Messages API request."""
    if building.is_builder(request):
        return building.build(request)
    dialogue = read_dialogue(request)
    if dialogue.words.startswith(using.NOTICE):
        return using.go_on(dialogue.words)
    intent = intent_of(dialogue.words)
    failed = dialogue.latest
    if failed is not None and failed.is_error and failed.result == DECLINED:
        return say(phrases.DECLINED)
    if failed is not None and failed.is_error:
        return say(phrases.FAILED.format(reason=failed.result))
    if piece := using.usage_of(dialogue.words):
        return using.use_piece(dialogue, piece)
    if piece := using.named(dialogue.words):
        return using.hint(piece)
    if what := using.wish(dialogue.words):
        return using.have_built(dialogue, what)
    return RULES[intent.kind](dialogue, intent)


def fixed(text: str) -> Callable[[Dialogue, Intent], Blocks]:
    def rule(dialogue: Dialogue, intent: Intent) -> Blocks:
        return say(text)

    return rule


RULES: dict[Kind, Callable[[Dialogue, Intent], Blocks]] = {
    Kind.HELP: fixed(phrases.HELP),
    Kind.GREETING: fixed(phrases.GREETING),
    Kind.THANKS: fixed(phrases.THANKS),
    Kind.TOO_LONG: fixed(phrases.TOO_LONG),
    Kind.UNKNOWN: fixed(phrases.UNKNOWN),
    Kind.FORGET_ALL: fixed(phrases.FORGET_ALL),
    Kind.CONVERSATION_LIST: talks.conversation_list,
    Kind.CONVERSATION_SEARCH: talks.conversation_search,
    Kind.CONVERSATION_DELETE: talks.conversation_delete,
    Kind.NOTE_LIST: notes.note_list,
    Kind.REMEMBER: notes.remember,
    Kind.FACT: notes.remember,
    Kind.FORGET_LAST: notes.forget_last,
    Kind.FORGET: notes.forget,
    Kind.CHANGE: notes.change,
    Kind.CORRECT: notes.correct,
    Kind.LOOK_UP: notes.look_up,
    Kind.DEEP: notes.deep,
    Kind.QUESTION: notes.question,
    Kind.FILE: files.file_work,
    Kind.CAPABILITY_LIST: capabilities.capability_list,
    Kind.CAPABILITY_RUN: capabilities.capability_run,
}
