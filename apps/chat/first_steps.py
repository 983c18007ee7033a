"""The offers of an empty chat: how far the set-up has come and what each further step would give, and things to say that come
from what the user has."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.selectors import is_put_away, preferences_for, tokens_kept
from apps.agent.model.client import current_endpoint
from apps.capabilities.catalog.selectors import capabilities_active
from apps.capabilities.models import Capability
from apps.chat.conversations.selectors import conversations_for
from apps.chat.models import Conversation
from apps.core.backups import last_backup
from apps.core.health import State, checks, recent_result
from apps.memory.models import Memory, Status, Trust
from apps.memory.notes.review import waiting_count

NAME = "first-steps"
"""Under which it is put away."""
LOOKED_AT = 60
"""Newest notes whose tags say what is going on in the user's life."""
SUGGESTIONS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the set-up: what it gives, and where (`url`) or how (`how`) it is done; `say` is a message that does it."""

    title: str
    gives: str
    done: bool
    how: str = ""
    url: str = ""
    action: str = ""
    say: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A card of an empty chat: it sends `say`, or leads to `url`."""

    title: str
    words: str
    say: str = ""
    url: str = ""


def first_steps(user: User) -> list[Step]:
    """The steps, or none where all are done or the user has put them away."""
    if is_put_away(preferences_for(user.pk), NAME):
        return []
    steps = [*_of_the_user(user.pk), *(_of_the_instance() if user.is_superuser else ())]
    return steps if not all(step.done for step in steps) else []


def _of_the_instance() -> Iterator[Step]:
    works = {
        check.name: recent_result(check).state == State.WORKS
        for check in checks()
        if check.name in {"sandbox", "web search"}
    }
    yield Step(
        "A language model",
        "Izzy converses freely, remembers by itself and builds tools.",
        not current_endpoint().is_offline,
        url=reverse("accounts:instance"),
        action="Connect one",
    )
    yield Step(
        "A finer search",
        "An encoder finds what says the same in other words.",
        settings.IZZY_EMBEDDER != "static",
        how="Run make setup and leave IZZY_EMBEDDER out (minilm, for English), or set it to mpnet or ollama:nomic-embed-text.",
    )
    yield Step(
        "A sandbox",
        "The tools that Izzy builds run cut off from this machine.",
        works.get("sandbox", False),
        how="Install bubblewrap (Linux), or set E2B_API_KEY.",
    )
    yield Step(
        "A search engine",
        "Izzy looks things up on the web.",
        works.get("web search", False),
        how="Set SEARXNG_URL or BRAVE_API_KEY; with Anthropic's API nothing is needed.",
    )
    yield Step(
        "A backup",
        "A lost disk does not take your memories along.",
        last_backup() is not None,
        how="Run manage.py backup FOLDER, best every night.",
    )


def _of_the_user(user_id: UUID) -> Iterator[Step]:
    yield Step(
        "A first memory",
        "What you tell Izzy once it knows in every conversation.",
        Memory.objects.for_user(user_id).exists(),
        say="Remember that I prefer short answers",
        action="Say one",
    )
    yield Step(
        "A first conversation",
        "It is kept, and found again by what was said in it.",
        conversations_for(user_id).exists(),
        say="What can you do?",
        action="Begin",
    )
    yield Step(
        "A program that shares your memory",
        "Claude Code, Cursor and others know what Izzy knows.",
        tokens_kept(user_id).exists(),
        url=reverse("accounts:tokens"),
        action="Make a token",
    )


def suggestions(user_id: UUID) -> list[Suggestion]:
    """Up to SUGGESTIONS cards, those that come from what the user has first. Five queries, however much that is."""
    built = capabilities_active(user_id, limit=1)
    return [*_own(user_id, built), *_for_everybody(has_built=bool(built))][:SUGGESTIONS]


def _own(user_id: UUID, built: list[Capability]) -> Iterator[Suggestion]:
    if waiting := waiting_count(user_id):
        things = "One memory waits" if waiting == 1 else f"{waiting} memories wait"
        yield Suggestion(
            "Look through the review", f"{things} for your word", url=reverse("memory:review")
        )
    newest = _newest(user_id)
    if newest:
        url = reverse("chat:conversation", args=[newest.pk])
        yield Suggestion("Go on where you were", newest.title, url=url)
    for tag in _topics(user_id):
        yield Suggestion("See what Izzy knows", (say := f"What do you know about {tag}?"), say=say)
    for capability in built:
        name = capability.name.replace("_", " ")
        url = reverse("capabilities:overview", args=[capability.name])
        yield Suggestion(f"Run {name}", capability.description, url=url)


def _newest(user_id: UUID) -> Conversation | None:
    rows = conversations_for(user_id).filter(archived=False).exclude(title="")
    return rows.order_by("-updated_at").first()


def _topics(user_id: UUID) -> list[str]:
    """The commonest tag of the newest notes that repeat nobody else's words."""
    rows = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).exclude(trust=Trust.UNTRUSTED)
    newest = rows.order_by("-created_at", "-id").values_list("tags", flat=True)[:LOOKED_AT]
    return [tag for tag, _ in Counter(tag for tags in newest for tag in tags).most_common(1)]


def _for_everybody(*, has_built: bool) -> Iterator[Suggestion]:
    for title, say in (
        ("Teach Izzy something", "Remember that I prefer short answers"),
        *([] if has_built else [("Have a capability built", "Build me a unit converter")]),
        ("See what it knows", "List my memories"),
        ("Find out more", "What can you do?"),
    ):
        yield Suggestion(title, say, say=say)
