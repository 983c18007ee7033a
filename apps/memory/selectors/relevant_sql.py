"""The statement behind `relevant`: scores every active note of one user in the database and returns the first few."""

from collections.abc import Sequence

from apps.memory.database.folding import SQL_NAME

_STRUCTURE = frozenset(',[]"\\')
"""What stands between the tags in their JSON, and what is written otherwise inside them."""
_TEXT = f"CASE WHEN length(CAST(content AS BLOB)) = length(content) THEN content ELSE {SQL_NAME}(content) END"
"""The content as it is compared. LIKE folds ASCII by itself; calling back into Python is for the rows that need it."""
_TAG = f"{SQL_NAME}(value)"
_QUICK_TAG = "(tags LIKE {} ESCAPE '\\' OR instr(tags, '\\') > 0)"
"""A cheap condition without which no tag can contain the keyword."""

# Ended by LIMIT -1, the inner query computes its columns once per row and not for each condition on them.
_SCORED = """
WITH present AS (
    SELECT id, tier, tags, created_at, {text} AS text,
           (julianday(%(now)s) - julianday(COALESCE(last_accessed, created_at))) * 24 AS hours,
           CASE WHEN priority > decay_rate * (%(cycle)s - priority_cycle)
                THEN priority - decay_rate * (%(cycle)s - priority_cycle) ELSE 0.0 END AS present
    FROM memory_memory
    WHERE user_id = %(user)s AND status = %(status)s
      AND (valid_from IS NULL OR valid_from <= %(now)s) AND (valid_to IS NULL OR valid_to > %(now)s)
    LIMIT -1
),
matched AS (
    SELECT id, created_at, present, hours, {tag_hits} AS tag_hits, {content_hits} AS content_hits
    FROM present WHERE present >= %(floor)s {only}
),
scored AS (
    SELECT id, created_at, present, tag_hits, content_hits,
           present + %(tag_weight)s * tag_hits + %(content_weight)s * content_hits + %(recency_weight)s * CASE
               WHEN hours >= %(recency_hours)s THEN 0.0 WHEN hours <= 0 THEN 1.0
               ELSE 1.0 - hours / %(recency_hours)s END AS score
    FROM matched {matching}
)
SELECT id, score, tag_hits, content_hits FROM scored ORDER BY {order} created_at DESC, id DESC LIMIT %(limit)s
"""


def scored_sql(*, keywords: Sequence[str], tags: int, matching: bool, order: str) -> str:
    """The statement for these (folded) keywords and `tags` wanted tags; `order` is `score` or `present`.

    Takes the parameters user, cycle, now, status, floor, tier, limit, the weights, `like0` … and `tag0` ….
    """
    content = [f"CASE WHEN text LIKE %(like{n})s ESCAPE '\\' THEN 1 ELSE 0 END" for n in range(len(keywords))]
    tagged = [_tag_hit(word, f"%(like{number})s") for number, word in enumerate(keywords)]
    return _SCORED.format(
        text=_TEXT,
        content_hits=" + ".join(content) or "0",
        tag_hits=" + ".join(tagged) or "0",
        only=_only(tags),
        matching="WHERE tag_hits + content_hits > 0" if matching else "",
        order="score DESC," if order == "score" else "present DESC, score DESC,",
    )


def _tag_hit(word: str, like: str) -> str:
    """1 where a tag contains the word. Most notes are decided by a look at the JSON as it is stored."""
    exact = _any_tag(f"LIKE {like} ESCAPE '\\'")
    if word.isascii() and _STRUCTURE.isdisjoint(word):
        exact = f"{_QUICK_TAG.format(like)} AND {exact}"
    return f"CASE WHEN tags = '[]' THEN 0 WHEN {exact} THEN 1 ELSE 0 END"


def _only(tags: int) -> str:
    wanted = ", ".join(f"%(tag{number})s" for number in range(tags))
    tagged = f" AND {_any_tag(f'IN ({wanted})')}" if tags else ""
    return "AND (%(tier)s = '' OR tier = %(tier)s)" + tagged


def _any_tag(condition: str) -> str:
    return f"EXISTS (SELECT 1 FROM json_each(tags) WHERE {_TAG} {condition})"  # noqa: S608  own names
