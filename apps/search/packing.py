"""A context block: as much of what was found as fits a budget of tokens, in lines that a model can read."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from apps.core.text import estimate_tokens, split_sentences
from apps.search.documents import Hit, Packed, Source
from apps.search.text.analysis import document_terms

FULL_HITS = 3  # best hits that are given whole, if they are no longer than FULL_TOKENS
FULL_TOKENS = 80
SHORT_TOKENS = 28
"""Longer ones are cut to the sentences that say most about the question, about this many tokens of them."""
TOKENS_PER_HIT = 12
LEAST_TOKENS = 6
"""With less of the budget left nothing more is tried."""
ELLIPSIS = "…"


def candidates_for(budget_tokens: int) -> int:
    """How many hits a budget could ever hold."""
    return max(5, min(200, budget_tokens // TOKENS_PER_HIT))


def pack(
    question: str, hits: Sequence[Hit], budget_tokens: int, *, remarks: Mapping[UUID, str] | None = None
) -> Packed:
    """The best hits as lines under headings of days, oldest first, at most `budget_tokens` estimated tokens.

    `items` keep the order of relevance and name exactly the hits whose text stands in the block. `remarks` are
    what a reader has to know of some documents: each stands in front of its document's words.
    """
    wanted = frozenset(document_terms(question)[1])
    kept: list[tuple[Hit, str, str]] = []  # with the heading of its day and the line that will be read
    headings: set[str] = set()
    spent = 0
    for rank, hit in enumerate(hits):
        if budget_tokens - spent < LEAST_TOKENS:
            break
        limit = FULL_TOKENS if rank < FULL_HITS else SHORT_TOKENS
        remark = (remarks or {}).get(hit.source_id)
        begin = (f"{hit.speaker}: " if hit.speaker else "- ") + (f"[{remark}] " if remark else "")
        line = begin + " ".join(shorten(hit.text, wanted, limit).split())
        heading = hit.happened_at.strftime("%Y-%m-%d")
        if hit.source is not Source.CONVERSATION:
            heading += f" {hit.source.value}"
        cost = estimate_tokens(line) + 1 + (0 if heading in headings else estimate_tokens(heading) + 1)
        if spent + cost > budget_tokens:
            continue
        spent += cost
        headings.add(heading)
        kept.append((hit, heading, line))
    days: dict[str, list[str]] = {}
    for _, heading, line in sorted(kept, key=lambda each: each[0].happened_at):
        days.setdefault(heading, [heading]).append(line)
    text = "\n".join("\n".join(day) for day in days.values())
    return Packed(text=text, tokens=estimate_tokens(text), items=[hit for hit, _, _ in kept])


def shorten(text: str, wanted: frozenset[str], limit: int) -> str:
    """The sentences of a text that share most with what is wanted, in their order, about `limit` tokens.

    At least one sentence is kept; one that is itself longer than twice the limit is cut at its end.
    """
    if estimate_tokens(text) <= limit:
        return text

    def worth(sentence: str) -> float:
        terms = set(document_terms(sentence)[1])
        asks = 0.5 if sentence.endswith("?") else 0.0
        return len(terms & wanted) + min(len(terms), 10) / 10 - asks

    sentences = [sentence.strip() for sentence in split_sentences(text) if sentence.strip()]
    order = sorted(range(len(sentences)), key=lambda place: (-worth(sentences[place]), place))
    chosen: list[int] = []
    spent = 0
    for place in order:
        tokens = estimate_tokens(sentences[place])
        if not chosen or spent + tokens <= limit:
            chosen.append(place)
            spent += tokens
    kept = _joined(sentences, sorted(chosen))
    return _cut(kept, 2 * limit) if spent > 2 * limit else kept


def _joined(sentences: Sequence[str], chosen: Sequence[int]) -> str:
    pieces: list[str] = []
    for number, place in enumerate(chosen):
        gap = place - (chosen[number - 1] if number else -1) > 1
        pieces.append(f"{ELLIPSIS} {sentences[place]}" if gap else sentences[place])
    if chosen[-1] < len(sentences) - 1:
        pieces.append(ELLIPSIS)
    return " ".join(pieces)


def _cut(text: str, limit: int) -> str:
    """The first words of a text, about `limit` tokens of them."""
    kept: list[str] = []
    spent = 0
    for word in text.split():
        spent += estimate_tokens(word)
        if kept and spent > limit:
            break
        kept.append(word)
    return " ".join(kept).rstrip(ELLIPSIS + " ") + f" {ELLIPSIS}"
