"""Topics of people's notes: for each the words that ask for it, and the sets of words it is noted under."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """`cues` are words of a question; `facets` keyword sets, the most telling first."""

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
