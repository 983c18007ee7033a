"""Keyword sets for a question without a language model: its own words, their topic's, their neighbours', the owner's tags."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

import numpy as np

from apps.memory.models import Memory, Status
from apps.search.embedders.vocabulary import nearness, neighbours
from apps.search.text.analysis import detect_language, split_words, stems, stop_words

MIN_SETS = 3
MAX_SETS = 5
MAX_SET_WORDS = 8
TOPIC_NEARNESS = 0.5
WORD_NEARNESS = 0.45
TAG_NEARNESS = 0.35
TAGGED_NOTES = 2000
"""The owner's tags are those of so many of the newest notes."""
NEAR_TAGS = 6
FORM_CHARS = 4
"""Words that begin with the same so many letters are taken for forms of one."""

FILLER_WEIGHT = 0.5

_FILLER_WORDS = """user users like likes liked love loves want wants know knows known think thinks hard deep deeply deepest remember
    recall tell told everything anything something things thing stuff really ever all about question please much many
    best good find search memory memories note notes say said does did kind sort type prefer prefers"""
_FILLER = frozenset(_FILLER_WORDS.split())
"""Words that say that something is asked, and not what."""


@dataclass(frozen=True, slots=True)
class Angle:
    """One keyword set. What only a set of lower weight finds is as much less relevant."""

    words: tuple[str, ...]
    weight: float = 1.0


def rule_angles(user_id: UUID, query: str) -> list[Angle]:
    """3 to 5 keyword sets, the question's own words first. Reads the owner's tags."""
    words = question_words(query)
    facets = _facets(words)
    sets = [words, *facets]
    if words and not facets:
        near = neighbours(words, least=WORD_NEARNESS, limit=3 * NEAR_TAGS)
        starts = {word[:FORM_CHARS] for word in words}  # merely other forms are left out
        sets.append([word for word in near if word[:FORM_CHARS] not in starts][:NEAR_TAGS])
    tags = _near_tags(user_id, [*words, *(word for facet in facets for word in facet)])
    return completed([*sets[: MAX_SETS - 1], tags], query)


def completed(sets: Iterable[Sequence[str]], query: str) -> list[Angle]:
    """The sets without empty and repeated ones, at most five; fewer than three are filled up with general ones.

    Beside words of its own, what is asked about anybody only fills up and weighs less.
    """
    unique: dict[frozenset[str], Angle] = {}
    for words in (tuple(one)[:MAX_SET_WORDS] for one in sets):
        if words:
            unique.setdefault(frozenset(word.casefold() for word in words), Angle(words))
    chosen = list(unique.values())[:MAX_SETS]
    if not chosen:
        return [Angle(words) for words in EVERYTHING]
    own = tuple(question_words(query)[:2])
    filler = [Angle((*own, *words)[:MAX_SET_WORDS], FILLER_WEIGHT) for words in EVERYTHING]
    return chosen + filler[: max(0, MIN_SETS - len(chosen))]


def question_words(query: str) -> list[str]:
    """The words of a question that say what it is about, each once."""
    words = split_words(query)
    stop = stop_words(detect_language(query)) | stop_words("en") | _FILLER
    return list(dict.fromkeys(word for word in words if word not in stop and len(word) > 1))[
        :MAX_SET_WORDS
    ]


def _facets(words: Sequence[str]) -> list[list[str]]:
    """The keyword sets of the one topic, or two, that the words ask for: by their stems, else by nearness in meaning."""
    if not words:
        return []
    cues, owners = _cues()
    near = nearness(words, cues)
    same = np.asarray([[word == cue for cue in _stems(cues)] for word in _stems(words)])
    best = np.where(same, 1.0, near).max(axis=0)
    scores = np.asarray([best[owners == number].max() for number in range(len(TOPICS))])
    order = [
        int(place) for place in np.argsort(-scores, kind="stable") if scores[place] >= TOPIC_NEARNESS
    ]
    if not order:
        return []
    first = TOPICS[order[0]].facets
    second = TOPICS[order[1]].facets[:1] if len(order) > 1 else ()
    return [list(facet) for facet in [*first, *second]]


@cache
def _cues() -> tuple[tuple[str, ...], "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """All topics' cues, and which topic each belongs to."""
    owner: dict[str, int] = {}
    for number, topic in enumerate(TOPICS):
        owner |= dict.fromkeys(topic.cues, number)
    for number, topic in enumerate(TOPICS):
        owner = dict.fromkeys((word for facet in topic.facets for word in facet), number) | owner
    cues, owners = tuple(owner), list(owner.values())
    return cues, np.asarray(owners, dtype=np.int64)


def _stems(words: Sequence[str]) -> list[str]:
    return stems(list(words), "en")


def _near_tags(user_id: UUID, words: Sequence[str]) -> list[str]:
    """The owner's own tags that are nearest in meaning to the words."""
    rows = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).exclude(tags=[])
    newest = rows.order_by("-created_at").values_list("tags", flat=True)[:TAGGED_NOTES]
    tags = list(dict.fromkeys(tag.casefold() for found in newest for tag in found))
    if not tags or not words:
        return []
    best = nearness(words, tags).max(axis=0)
    order = np.argsort(-best, kind="stable")
    return [tags[place] for place in order[:NEAR_TAGS] if best[place] >= TAG_NEARNESS]


@dataclass(frozen=True, slots=True)
class Topic:
    """`cues` are words of a question; `facets` keyword sets, the most specific first."""

    cues: tuple[str, ...]
    facets: tuple[tuple[str, ...], ...]


def _topic(cues: str, *facets: str) -> Topic:
    return Topic(tuple(cues.split()), tuple(tuple(facet.split()) for facet in facets))


TOPICS = (
    _topic(
        "food eat eating meal dinner lunch breakfast cook cooking drink taste hungry restaurant recipe snack",
        "food cuisine restaurant dinner lunch breakfast meal",
        "diet allergy allergic vegetarian vegan intolerance",
        "cooking recipe dish taste coffee drink",
    ),
    _topic(
        "health healthy doctor illness sick medicine hospital pain allergy treatment disease fitness",
        "health doctor medicine medication hospital illness",
        "allergy allergic diagnosis pain blood diet",
        "fitness exercise sport sleep weight",
    ),
    _topic(
        "family wife husband partner child children son daughter mother father sister brother parents relatives",
        "family wife husband partner children married",
        "mother father sister brother parents daughter son",
        "birthday wedding anniversary relatives",
    ),
    _topic(
        "friend friends people neighbour colleague buddy acquaintance",
        "friend neighbour colleague contact",
        "birthday gift party visit",
    ),
    _topic(
        "home house flat apartment address live living city neighbourhood garden",
        "home house flat apartment address garden",
        "lives living moved city town neighbourhood",
        "rent landlord furniture repair",
    ),
    _topic(
        "work job office employer career company business project boss salary profession",
        "work job office employer company profession",
        "project deadline decision meeting colleague manager",
        "career salary skill business",
    ),
    _topic(
        "study school university course exam learn learning degree student education",
        "study school university course exam degree",
        "learning language teacher lesson",
    ),
    _topic(
        "travel trip holiday vacation flight hotel visit tour beach abroad country",
        "travel trip holiday vacation flight hotel",
        "city country beach mountains visited plan",
        "passport visa train luggage booking",
    ),
    _topic(
        "hobby leisure music sport sports game film movie book reading play fun weekend evening",
        "hobby music sport game instrument club",
        "film movie book series reading author",
        "favourite enjoys weekend",
    ),
    _topic(
        "car drive vehicle bicycle bike train bus commute transport",
        "car vehicle bicycle bike train bus",
        "licence garage repair parking commute",
    ),
    _topic(
        "money budget bank price spend savings cost pay insurance tax buy shopping",
        "money budget bank savings account",
        "insurance tax rent salary invoice",
        "buy purchase shopping subscription price",
    ),
    _topic(
        "pet pets animal animals dog cat horse bird",
        "pet dog cat animal",
        "vet breed walk",
    ),
    _topic(
        "date birthday appointment calendar schedule deadline remind event anniversary",
        "birthday anniversary date appointment",
        "calendar schedule deadline meeting reminder",
    ),
    _topic(
        "computer software programming code laptop phone technology device server",
        "computer laptop phone software device",
        "programming language code editor framework server",
    ),
    _topic(
        "gift present surprise wish",
        "gift present wish likes favourite",
        "birthday anniversary size colour hobby",
    ),
)

EVERYTHING = (
    ("preference", "likes", "favourite", "enjoys", "dislikes"),
    ("family", "partner", "friend", "home", "lives"),
    ("work", "project", "decision", "plan", "goal"),
    ("health", "allergy", "diet", "habit"),
)
"""For a question about no topic in particular."""
