"""Questions about the user as a whole ("What do you know about me?"), and the notes that answer them: no words of such a
question say what is looked for, so what matters most and lasts longest comes up."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Case, Q, Value, When
from django.utils import timezone

from apps.memory.models import Memory, Status, Tier, Trust
from apps.memory.notes.selectors import holds_at, with_present_priority
from apps.search.text.words import CHATTER

from .block import LASTING, NOTE_TOKENS, SurfacedNote, shortened

MOST = 40
"""More notes than the budget of a block ever holds."""
MAX_CLAUSE_WORDS = 20
REASON = "One of the most important things Izzy knows about you."
_CLAUSE = re.compile(r"[.!?;:…\n]+")
_WORD = re.compile(r"[^\W\d_]+")


def _plain(text: str) -> str:
    """The text's words in lower case and without accents, which people leave out."""
    bare = unicodedata.normalize("NFD", text.casefold())
    return " ".join(_WORD.findall("".join(sign for sign in bare if not unicodedata.combining(sign))))


@dataclass(frozen=True, slots=True)
class _Phrasing:
    """How one language asks for all that is known: `about` oneself with a word of `known_by`, or as a `whole` question;
    `filler` may stand beside, and nothing else."""

    about: tuple[str, ...]
    whole: tuple[str, ...]
    known_by: frozenset[str]
    filler: frozenset[str]


def _phrasing(about: str, whole: str, known_by: str, filler: str) -> _Phrasing:
    abouts, wholes = (tuple(map(_plain, text.split(","))) for text in (about, whole))
    beside = _plain(" ".join([filler, about, whole, "izzy", *CHATTER]))
    return _Phrasing(abouts, wholes, frozenset(_plain(known_by).split()), frozenset(beside.split()))


PHRASINGS = (
    _phrasing(
        "about me, about myself, about the user",
        "who am i, who i am, do you know me, describe me, sum me up, summarise me, summarize me",
        """know known knew tell told remember remembered recall learned learnt saved stored noted kept gathered collected
        found describe summarise summarize list show say summary overview profile think""",
        """what which all do does did you have has had can could would will i me my a an the of to in on so far up until now
        already still really actually exactly just even and any anything everything something thing things stuff facts
        details information most important your notes note memory memories how much well long is are there give make out
        from our conversations curious wonder wondering whole full""",
    ),
    _phrasing(
        "über mich, von mir, zu mir, zu meiner Person, über meine Person",
        "wer bin ich, wer ich bin, kennst du mich, du mich kennst, beschreib mich, beschreibe mich",
        """weißt weisst wissen kennst merken gemerkt erinnerst erinnern gelernt gespeichert notiert notizen erfahren behalten
        erzähl erzähle sag sage nenn nenne zeig zeige beschreib beschreibe fass fasse zusammenfassung denkst""",
        """was du dir dich alles mir denn eigentlich so bisher bis jetzt schon noch hast habe kannst könntest mal einfach etwas
        irgendetwas dinge fakten das die der den eine ein in an und wie viel gut genau wirklich deine deinen wichtigste
        wichtigsten zusammen über ich woran gib""",
    ),
    _phrasing(
        "de mí, sobre mí, acerca de mí, mí",
        "quién soy, cuánto me conoces, tan bien me conoces, descríbeme, resúmeme",
        """sabes sabe saber recuerdas recuerda recordar aprendido guardado anotado conoces conoce dime dígame cuéntame cuenta
        háblame habla muéstrame enséñame resume resumen describe piensas opinas""",
        """qué lo la el los las todo toda todos todas cosas cosa algo has ha hasta ahora es tú usted te se me puedes podrías
        por favor tan bien cuánto mucho ya y un una yo en tus notas memoria más importante realmente exactamente datos""",
    ),
    _phrasing(
        "de moi, sur moi, à mon sujet, à propos de moi, me concernant",
        "qui suis je, qui je suis, me connais tu, est ce que tu me connais, décris moi, résume moi",
        """sais savez savoir souviens souvenez rappelles appris retenu noté gardé connais connaissez dis dites raconte parle
        montre résume résumé décris enregistré mémorisé penses""",
        """que quoi qu est ce tu vous te t s il plaît as avez a de tout toutes tous les le la l choses chose quelque jusqu ici
        maintenant déjà encore moi me m peux pourrais pouvez bien comment combien en et un une des tes notes mémoire
        vraiment exactement plus important importantes d je""",
    ),
)


def asks_about_user(text: str) -> bool:
    """Whether a message asks for what is known about the user, and for nothing more particular."""
    for clause in map(_plain, _CLAUSE.split(text[:2000])):
        padded, words = f" {clause} ", frozenset(clause.split())
        if not words or len(clause.split()) > MAX_CLAUSE_WORDS:
            continue
        for phrasing in PHRASINGS:
            named = any(f" {phrase} " in padded for phrase in phrasing.about)
            asked = (named and not words.isdisjoint(phrasing.known_by)) or any(
                f" {phrase} " in padded for phrase in phrasing.whole
            )
            if asked and words <= phrasing.filler | phrasing.known_by:
                return True
    return False


def notes_about_user(
    user_id: UUID, *, now: datetime | None = None, exclude_ids: Collection[UUID] = ()
) -> list[SurfacedNote]:
    """The user's active notes of most importance that hold now, among equals those that last, are used most, and are newest.

    None that repeats what others said. Their scores fall evenly from 1 to 0.5.
    """
    now = now or timezone.now()
    rows = Memory.objects.for_user(user_id).filter(holds_at(now), status=Status.ACTIVE)
    rows = with_present_priority(
        user_id, rows.exclude(trust=Trust.UNTRUSTED).exclude(pk__in=exclude_ids)
    )
    lasting = Case(
        When(Q(tier=Tier.LONG_TERM, kind__in=LASTING), then=Value(2)),
        When(tier=Tier.LONG_TERM, then=Value(1)),
        default=Value(0),
    )
    best = rows.order_by("-importance", lasting.desc(), "-access_count", "-created_at", "-pk")[:MOST]
    return [
        SurfacedNote(
            note,
            shortened(note.content, NOTE_TOKENS),
            1 - rank / (2 * MOST),
            reason=REASON,
            parts={"importance": note.importance / 5},
        )
        for rank, note in enumerate(best)
    ]
