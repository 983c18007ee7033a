"""Names of a link between two notes, from either end."""

from dataclasses import dataclass

from apps.memory.models import Memory, Relation, Status


@dataclass(frozen=True, slots=True)
class Words:
    """`forth` from the source to the target, `back` the other way; `style` is how its line is drawn."""

    forth: str
    back: str
    style: str = "plain"

    @classmethod
    def of(cls, relation: str, *ends: Memory) -> "Words":
        """Those of a relation between two notes; another text than Izzy's own stands for itself. What contradicted a note that
        does not hold any more is settled."""
        if relation == Relation.CONTRADICTS and any(note.status != Status.ACTIVE for note in ends):
            return SETTLED
        return KNOWN.get(relation) or cls(relation.replace("_", " "), relation.replace("_", " "))


KNOWN: dict[str, Words] = {
    Relation.RELATED: Words("goes with", "goes with"),
    Relation.SUPERSEDES: Words("replaces", "was replaced by", "replaced"),
    Relation.CONTRADICTS: Words("contradicts", "contradicts", "against"),
    Relation.ELABORATES: Words("adds to", "has more in"),
}
SETTLED = Words("contradicted", "contradicted", "replaced")
CHOICES = [(str(relation), KNOWN[relation].forth) for relation in (Relation.RELATED, Relation.ELABORATES)]
"""Links a reader may make; the others come from replacing and from contradictions."""
