"""Full text against the stems of passages, vectors against their spaces, and what keeps every process' index fresh."""

from collections.abc import Iterator, Sequence
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef

from apps.core.db.writing import SLICE, writing_for
from apps.core.integrity import Check, Finding, owner_of, per_user, row_name, users_each
from apps.search.backends import postings_held
from apps.search.embedders.engines import static_embedder
from apps.search.embedders.static import StaticEmbedder
from apps.search.filling import base_fill, side_empty
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone
from apps.search.spaces import Role, encoder_name

AT_ONCE = 2000
RENEWED = "Writes its full text anew from its stems."


def _postings(user_id: UUID) -> Iterator[Finding]:
    for key in postings_held.wrong(user_id):
        yield Finding(
            about=row_name(Passage, key),
            message="Full text holds other stems of it than it has.",
            repair=RENEWED,
            user_id=user_id,
            subject=key,
        )


def _postings_fix(findings: Sequence[Finding]) -> None:
    user_id = owner_of(findings)
    with transaction.atomic():
        postings_held.renew(user_id, {finding.subject for finding in findings})


def _full_text(user_id: UUID | None) -> Iterator[Finding]:
    if user_id is not None:
        return
    if not postings_held.sound():
        yield Finding(
            about="full text",
            message="The structure of the full text is damaged.",
            repair="Empties the full text and writes it anew, user by user.",
            subject=None,
        )
        return
    known = set(
        IndexOwner.objects.filter(user__isnull=False, user__pk__isnull=False).values_list(
            "number", flat=True
        )
    )
    for number in postings_held.owners():
        if number not in known:
            yield Finding(
                about=f"full text of owner {number}",
                message="Full text holds stems of an owner who is gone.",
                repair="Removes these stems.",
                subject=number,
            )


def _full_text_fix(findings: Sequence[Finding]) -> None:
    for number in {finding.subject for finding in findings}:
        with transaction.atomic():
            if number is not None:
                postings_held.clear(number)
                continue
            postings_held.empty()
        for user_id in users_each(None) if number is None else ():
            ids = Passage.objects.filter(user_id=user_id).order_by("id").values_list("id", flat=True)
            last = 0
            while some := list(ids.filter(id__gt=last)[:SLICE]):
                with writing_for(user_id), transaction.atomic():
                    postings_held.renew(user_id, set(some))
                last = some[-1]


def _vectors(user_id: UUID) -> Iterator[Finding]:
    side = EmbeddingSpace.objects.filter(role=Role.SIDE).first()
    wanted = None if side is None else side.dimension * 2
    embedder = static_embedder()
    rows = Passage.objects.filter(user_id=user_id).order_by()
    for key, vector, beside in rows.values_list("id", "vector", "side_vector").iterator(AT_ONCE):
        if vector is None and embedder is not None:
            yield _vector(
                user_id, key, "vector", "It has no vector, although the bundled ones are there."
            )
        elif vector is not None and not _is_vector(vector, StaticEmbedder.dimension * 2):
            yield _vector(user_id, key, "vector", "Its vector is none of the bundled space.")
        if beside is not None and (wanted is None or not _is_vector(beside, wanted)):
            yield _vector(
                user_id, key, "side_vector", "Its second vector is none of the encoder's space."
            )


def _is_vector(packed: bytes | memoryview, size: int) -> bool:
    return len(packed) == size and bool(np.isfinite(np.frombuffer(packed, dtype="<f2")).all())


def _vector(user_id: UUID, key: int, column: str, message: str) -> Finding:
    return Finding(
        about=row_name(Passage, key),
        message=message,
        repair="Embeds its text again."
        if column == "vector"
        else "Has the encoder embed its text again.",
        user_id=user_id,
        subject=(key, column),
    )


def _vectors_fix(findings: Sequence[Finding]) -> None:
    user_id = owner_of(findings)
    by_column = {
        column: [key for key, each in (finding.subject for finding in findings) if each == column]
        for column in ("vector", "side_vector")
    }
    for column, ids in by_column.items():
        owner = IndexOwner.objects.filter(user_id=user_id)
        rows = Passage.objects.filter(user_id=user_id, id__in=ids)
        with transaction.atomic():
            if ids and owner.update(change=F("change") + 1):
                rows.update(**{column: None, "change": owner.values_list("change", flat=True).get()})
    if by_column["vector"]:
        base_fill(Passage.objects.filter(user_id=user_id, id__in=by_column["vector"]))


def _spaces(user_id: UUID | None) -> Iterator[Finding]:
    """The rows of the two vector spaces, against the embedders of this version and these settings."""
    if user_id is not None:
        return
    base = EmbeddingSpace.objects.filter(role=Role.BASE).first()
    of_bundled = (StaticEmbedder.name, StaticEmbedder.dimension)
    if base is not None and (base.name, base.dimension) != of_bundled:
        yield Finding(
            about=row_name(base),
            message="The base space is that of another embedder than the bundled one.",
            repair="Describes the bundled space again; vectors that do not fit it are embedded again.",
            subject="base",
        )
    elif base is None and Passage.objects.exists():
        yield Finding(
            about=row_name(EmbeddingSpace, "base"),
            message="There are passages, but no base space.",
            repair="Describes the bundled space again.",
            subject="base",
        )
    side, named = EmbeddingSpace.objects.filter(role=Role.SIDE).first(), encoder_name()
    if side is not None and named and side.name != named:
        yield Finding(
            about=row_name(side),
            message="The second vectors are another encoder's than the one that IZZY_EMBEDDER names.",
            repair="Removes them, so that the encoder which is named embeds all texts.",
            subject="side",
        )


def _spaces_fix(findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.subject == "side":
            side_empty()
            continue
        fixed = {"name": StaticEmbedder.name, "dimension": StaticEmbedder.dimension}
        scale = {"noise": StaticEmbedder.noise, "match": StaticEmbedder.match}
        EmbeddingSpace.objects.update_or_create(role=Role.BASE, defaults=fixed | scale)


def _owners(user_id: UUID) -> Iterator[Finding]:
    """The change numbers by which other processes learn of what is new."""
    owner = IndexOwner.objects.filter(user_id=user_id).first()
    passages = Passage.objects.filter(user_id=user_id)
    if owner is None:
        if passages.exists():
            yield Finding(
                about=row_name(IndexOwner, user_id),
                message="There are passages of the user, who is no owner in the index.",
                repair="Makes the user one and writes the full text anew.",
                user_id=user_id,
                subject=None,
            )
        return
    tombstones = Tombstone.objects.filter(user_id=user_id)
    newest = max(rows.aggregate(newest=Max("change"))["newest"] or 0 for rows in (passages, tombstones))
    if newest > owner.change or owner.tombstones_from > owner.change:
        yield Finding(
            about=row_name(owner),
            message="Its change number is lower than that of its rows: searches would miss them.",
            repair="Raises the number.",
            user_id=user_id,
            subject=None,
        )
    alive = passages.filter(id=OuterRef("passage_id"))
    for key in tombstones.filter(Exists(alive)).order_by().values_list("pk", flat=True):
        yield Finding(
            about=row_name(Tombstone, key),
            message="It says that a passage was removed which is there.",
            repair="Removes it, and has every process load the user's index anew.",
            user_id=user_id,
            subject=key,
        )


@transaction.atomic
def _owners_fix(findings: Sequence[Finding]) -> None:
    user_id = owner_of(findings)
    owner, _ = IndexOwner.objects.select_for_update().get_or_create(user_id=user_id)
    tombstones = Tombstone.objects.filter(user_id=user_id)
    tombstones.filter(pk__in=[each.subject for each in findings if each.subject is not None]).delete()
    newest = max(
        rows.aggregate(newest=Max("change"))["newest"] or 0
        for rows in (Passage.objects.filter(user_id=user_id), tombstones)
    )
    # Above all of them, and no index of before is brought up to date: it loads anew.
    owner.change = max(owner.change, owner.tombstones_from, newest) + 1
    owner.tombstones_from = owner.change
    owner.save(update_fields=["change", "tombstones_from"])


POSTINGS = Check("Full text holds the stems of passages", per_user(_postings), _postings_fix, order=70)
FULL_TEXT = Check("The full text is whole", _full_text, _full_text_fix, order=40)
VECTORS = Check("Vectors are those of their spaces", per_user(_vectors), _vectors_fix, order=65)
SPACES = Check("Vector spaces are those of the embedders", _spaces, _spaces_fix, order=41)
OWNERS = Check(
    "Every process hears of what is new in the index", per_user(_owners), _owners_fix, order=42
)
