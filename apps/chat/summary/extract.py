"""A summary without a model: of each turn a line with what was asked and what was answered, within a budget.

It invents nothing and keeps little; where a model is connected later, it writes the summary anew.
"""

import re
from collections.abc import Sequence

from apps.chat.models import Role
from apps.chat.summary.transcript import FoldedTurn
from apps.core.text import estimate_tokens, split_sentences

LEVELS = ((200, 160), (70, 0), (40, 0))
"""Characters of the question and the answer; where the lines of one level do not fit, the next one is tried."""
DATED = 70
EARLIER_SHARE = 0.4  # the earlier summary's greatest share of the budget

_MARKUP = re.compile(r"[*_`#>|]+")


def extract(earlier: str, turns: Sequence[FoldedTurn], *, tokens: int) -> str:
    """The earlier summary and a line per turn, of at most `tokens` estimated tokens; the oldest lines give way."""
    kept = _newest(earlier.splitlines(), int(tokens * EARLIER_SHARE))
    room = tokens - estimate_tokens("\n".join(kept))
    for level in LEVELS:
        lines = [_line(turn, *level) for turn in turns]
        if estimate_tokens("\n".join(lines)) <= room:
            break
    return "\n".join([*kept, *_newest(lines, room)]).strip()


def _line(turn: FoldedTurn, said_chars: int, answer_chars: int) -> str:
    said = _first(turn.said(Role.USER), said_chars)
    dated = turn.messages and said_chars >= DATED
    when = f"{turn.messages[0].created_at:%Y-%m-%d %H:%M} " if dated else ""
    answer = _first(turn.said(Role.ASSISTANT), answer_chars) if answer_chars else ""
    return f"- {when}The user: “{said}”" + (f" Izzy: “{answer}”" if answer else "")


def _first(text: str, limit: int) -> str:
    """The first sentence, or more of them as long as they fit, without line breaks and markup."""
    plain = " ".join(_MARKUP.sub(" ", text[: limit * 8]).split())
    found = ""
    for sentence in split_sentences(plain):
        if found and len(found) + len(sentence) > limit:
            break
        found += sentence
    found = found.strip()
    return found if len(found) <= limit else found[:limit].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _newest(lines: Sequence[str], tokens: int) -> list[str]:
    """The last lines that fit; a line in front says how many do not."""
    if estimate_tokens("\n".join(lines)) <= tokens:
        return list(lines)
    kept: list[str] = []
    room = tokens - 8
    for line in reversed(lines):
        room -= estimate_tokens(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return [f"- ({len(lines) - len(kept)} earlier lines left out)", *kept]
