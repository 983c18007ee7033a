"""A context block: as much of what was found as fits a budget of tokens, in lines that a model can read."""

from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from uuid import UUID

from apps.core.text import estimate_tokens, split_sentences
from apps.search.documents import Hit, Packed, Source
from apps.search.text.analysis import detect_language, document_terms

FULL_HITS = 3  # best hits that are given whole, if they are no longer than FULL_TOKENS
FULL_TOKENS = 80
SHORT_TOKENS = 22
"""Longer ones are cut to the sentences that say most about the question, about this many tokens of them."""
TOKENS_PER_HIT = 12
LEAST_TOKENS = 6
"""With less of the budget left nothing more is tried."""
CUT = "[…]"


def candidates_for(budget_tokens: int) -> int:
    """How many hits a budget could ever hold."""
    return max(5, min(200, budget_tokens // TOKENS_PER_HIT))


def pack(
    question: str,
    hits: Sequence[Hit],
    budget_tokens: int,
    *,
    remarks: Mapping[UUID, str] | None = None,
    zone: tzinfo = UTC,
) -> Packed:
    """The best hits as lines under headings of days in `zone`, oldest first, at most `budget_tokens` estimated tokens.

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
        heading = hit.happened_at.astimezone(zone).strftime("%Y-%m-%d")
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

    At least one sentence is kept; one that is itself longer than twice the limit is cut around the words that are
    wanted. CUT stands for all that is left out.
    """
    if estimate_tokens(text) <= limit:
        return text
    language = detect_language(text)

    def worth(sentence: str) -> float:
        terms = set(document_terms(sentence, language)[1])
        asks = 0.5 if sentence.endswith("?") else 0.0
        return len(terms & wanted) + min(len(terms), 10) / 10 - asks

    sentences = [sentence.strip() for sentence in split_sentences(text) if sentence.strip()]
    best, *others = sorted(range(len(sentences)), key=lambda place: (-worth(sentences[place]), place))
    spent = estimate_tokens(sentences[best])
    if spent > 2 * limit:
        sentences[best] = _around(sentences[best], wanted, language, 2 * limit)
    chosen = [best]
    for place in others:
        tokens = estimate_tokens(sentences[place])
        if spent + tokens <= limit:
            chosen.append(place)
            spent += tokens
    pieces = [
        sentence if place in chosen else CUT
        for place, sentence in enumerate(sentences)
        if place in chosen or place - 1 in chosen or place == 0
    ]
    return " ".join(pieces).replace(f"{CUT} {CUT}", CUT)


def _around(sentence: str, wanted: frozenset[str], language: str, limit: int) -> str:
    """About `limit` tokens of a sentence: where most of the wanted words stand together, with what stands around them."""
    words = sentence.split()
    costs = [estimate_tokens(word) for word in words]
    matches = [frozenset(document_terms(word, language)[1]) & wanted for word in words]
    # The fewest words from each matching one on that hold most, and then as much on both sides as there is room for.
    start = end = most = 0
    for first in (place for place, terms in enumerate(matches) if terms):
        spent, held = 0, set[str]()
        for last in range(first, len(words)):
            spent += costs[last]
            if spent > limit:
                break
            held |= matches[last]
            if len(held) > most:
                start, end, most = first, last + 1, len(held)
    left = limit - sum(costs[start:end])
    while left > 0 and (start > 0 or end < len(words)):
        if start > 0:
            start -= 1
            left -= costs[start]
        if end < len(words) and left > 0:
            left -= costs[end]
            end += 1
    kept = " ".join(words[start:end])
    return f"{f'{CUT} ' * (start > 0)}{kept}{f' {CUT}' * (end < len(words))}"
