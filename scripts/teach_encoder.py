"""Makes `apps/search/embedders/NAME_taught.npz` of the English examples of `apps/search/proactive/`: `python scripts/teach_encoder.py NAME`.

Needs PyTorch beside Izzy's packages (`uv pip install torch`) and, for `minilm`, `mpnet`; two cores took half an hour for `mpnet`, and 42 minutes
beside other work for `minilm`.
Both towers begin as the encoder is, and learn together that of the notes in a batch each message's own is the most likely (softmax of
cosines, as in InfoNCE), or nothing at all, where none of them matters; and so with the occasions of whole people's notes. Batches mix
messages of anybody's with those of whole people, whose other notes do not matter. The messages' tower learns beside to tell those that
concern whoever wrote them from those that do not. Documents are held to what the encoder made of them, for questions, which it embeds as
it came, to find them. `minilm` also learns what `mpnet`, once taught, takes for likely (distillation). The towers learn nothing from the
people of `benchmarks/people/`. A message that goes on with a talk is read `in_context`, as it is when it is asked.

With `--messages` the tower of messages alone goes on learning, from where it stands in the file: vectors of notes, and all that people have stored,
stay as they are.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from apps.search.embedders.own import MINILM, OWN, model
from apps.search.embedders.taught import TOWERS, Taught, Tower, file_of, taught, tower_of, write
from apps.search.embedders.transformer import PLACES, WORDS
from apps.search.kept import keep
from apps.search.proactive.adapter import calibration, example_notes, example_people
from apps.search.proactive.concern import encoder_examples, encoder_lesson, example_messages
from apps.search.proactive.contextual_query import in_context

RANK = 16
EPOCHS, BATCH = 2, 256
"""Passes over all messages, messages a step."""
PEOPLE = 4
"""Of each of them all messages are in a batch."""
WARM, SLOW = 30, 1.5
"""Steps until the full pace; it falls from 1 / SLOW of the way before the end."""
SHARPNESS = 20.0
"""Log-odds of a cosine of 1."""
HELD = 0.5
"""The cost of a document's vector that is orthogonal to the encoder's own."""
OCCASIONS = 0.5
"""The cost of a message to which the occasions of none of its notes are likely."""
CONCERN, STEEP = 1.0, 3.0
"""The cost of a message whose concern is as likely as not, and how fast the odds of concern rise with it."""
NOTHING, NOTHING_PACE = 8.0, 0.05
"""Log-odds of nothing at all, of a message that sounds as if it concerned somebody as much as nobody, to begin with, and how fast it learns."""
EACH = 64
"""Messages a step that concern somebody, and that concern nobody."""
DROPPED = 0.1
HELD_TEXTS = 96
"""Messages a step that, as documents, are held to the encoder's own vectors, too."""
MOST_TOKENS = 96
CHUNKS = 4
FROM = {MINILM: 0, "mpnet": 6}
"""The first layer that learns: what those before it make of a text is computed once."""
PACES = {MINILM: 1e-3, "mpnet": 5e-4}
"""The most that Adam moves a number in a step."""
ON = {MINILM: (3e-4, 80, 256), "mpnet": (5e-4, 40, 152)}
"""Where a tower goes on learning: the same, steps, and messages a step."""
HALF = {MINILM: False, "mpnet": True}
"""Whether products are computed in half precision, which takes longer where matrices are small."""
TEACHERS = {MINILM: "mpnet"}
"""Whose likelihoods an encoder learns from, beside the examples."""
TAUGHT, SOFT = 1.0, 0.5
"""The cost of likelihoods unlike the teacher's, and the share of SHARPNESS by which both are measured."""
PARTS = ("qkv", "mixed", "inner", "outer")

Learning = dict[str, tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class Lessons:
    """Texts as tokens; of each message the place of its note, and of those that matter too."""

    notes: list[list[int]]
    messages: list[list[int]]
    noted: list[int]
    also: list[list[int]]
    people: list[list[int]]
    """Places of each person's messages."""
    near: list[list[list[int]]]
    """Of each person the messages to which none of their notes matters."""
    occasions: dict[int, list[list[int]]]
    """Of each note of a whole person when it matters, a phrase each."""
    teacher: tuple[Tensor, Tensor] | None
    """The teacher's vectors of messages and of notes."""
    own: tuple[Tensor, Tensor] | None
    """Vectors of notes and of messages as the encoder came, where documents are to stay near to them."""
    single: int
    """The first so many messages are of notes by themselves."""
    concerning: list[list[int]]
    idle: list[list[int]]
    concern: Tensor
    """The lesson of concern of the encoder's own vectors, to begin with."""


def judged_messages() -> set[str]:
    """The messages of the people of `benchmarks/`, who judge what is learnt here; their files are read as they are, without a database."""
    files = (Path(__file__).parents[1] / "benchmarks/people").glob("*.json")
    sets = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    known = [person for one in sets for person in one.get("people", ())]
    return {said["talk"][-1].casefold() for person in known for said in person["messages"]}


def lessons_of(name: str, encoder: "Model", before: Taught | None) -> Lessons:
    """All English examples, those of whole people last; for what was taught `before` to go on."""
    examples, people = example_notes("en"), example_people("en")
    place = len(examples.notes) - sum(len(person["notes"]) for person in people)
    single = sum(noted < place for noted in examples.noted)
    messages, noted = list(examples.messages[:single]), list(examples.noted[:single])
    also: list[list[int]] = [[] for _ in messages]
    occasions: dict[int, list[list[int]]] = {}
    groups, nearby = [], []
    kinds: tuple[list[str], list[str]] = [], []
    for person in people:
        talks = [dict(one, text=in_context(one["talk"])) for one in person["talks"]]
        told = [*person["messages"], *(one for one in talks if one["note"] is not None)]
        nearby.append([*person["idle"], *(one["text"] for one in talks if one["note"] is None)])
        kinds[True].extend(one["text"] for one in talks if one["note"] is not None)
        groups.append(list(range(len(messages), len(messages) + len(told))))
        for said in told:
            messages.append(said["text"])
            noted.append(place + said["note"])
            also.append([place + other for other in said["also"]])
        for phrases in person["occasions"]:
            occasions[place] = encoder.tokens(phrases)
            place += 1
    notes, texts = (
        [tokens[:MOST_TOKENS] for tokens in encoder.tokens(each)] for each in (examples.notes, messages)
    )
    near = [[tokens[:MOST_TOKENS] for tokens in encoder.tokens(each)] for each in nearby]
    own = teacher = None
    if before is None:
        own = encoder.embed_texts(examples.notes), encoder.embed_texts(messages)
    if before is None and name in TEACHERS:
        known, knowing = taught(TEACHERS[name]), Model(TEACHERS[name])
        teacher = (
            knowing.embed_texts(messages, learnt_of(known.messages)),
            knowing.embed_texts(examples.notes, learnt_of(known.notes)),
        )
    kinds[False].extend(text for each in nearby for text in each)
    judged = judged_messages()
    for text, own_life in zip(*example_messages("en"), strict=True):
        if text.casefold() not in judged:
            kinds[own_life].append(text)
    idle, concerning = ([tokens[:MOST_TOKENS] for tokens in encoder.tokens(each)] for each in kinds)
    if before is None:
        some = [kind[:: -(-len(kind) // 1500)] for kind in kinds]
        personal = [False] * len(some[0]) + [True] * len(some[1])
        concern = encoder_lesson(encoder.embed_texts([*some[0], *some[1]]).numpy(), personal)
    else:
        concern = before.concern
    return Lessons(
        notes,
        texts,
        noted,
        also,
        groups,
        near,
        occasions,
        teacher,
        own,
        single,
        concerning,
        idle,
        torch.tensor(concern),
    )


class Model:
    """The encoder in PyTorch, with what is added to its matrices."""

    def __init__(self, name: str) -> None:
        self._encoder, self._shape, self._from = model(name), OWN[name].shape, FROM[name]
        self._own = {
            part: torch.tensor(np.asarray(value, np.float32))
            for part, value in self._encoder.weights.items()
        }
        self._half = HALF[name]
        for part, value in self._own.items():
            if self._half and part[0].isdigit() and value.dim() == 2:
                self._own[part] = value.to(torch.bfloat16)
        self._matrices = [
            f"{number}.{part}" for number in range(self._from, self._shape.layers) for part in PARTS
        ]
        self._near = self._encoder.nearness
        self._begun: dict[tuple[int, ...], Tensor] = {}

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return self._encoder.tokens(texts)

    def embed_texts(self, texts: Sequence[str], added: Learning | None = None) -> Tensor:
        """Unit vectors of any number of texts, from which nothing is learnt."""
        tokens = [each[:MOST_TOKENS] for each in self.tokens(texts)]
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        with torch.no_grad():
            rows = [
                self._chunk([tokens[place] for place in order[start : start + BATCH]], added or {})
                for start in range(0, len(order), BATCH)
            ]
        return torch.cat(rows)[torch.tensor(np.argsort(order))]

    def added(self, seed: int) -> Learning:
        """The products added at first, which change nothing."""
        draw = torch.Generator().manual_seed(seed)
        found = {}
        for name in self._matrices:
            size, out = self._own[f"{name}.weight"].shape
            down = torch.randn(size, RANK, generator=draw) / size**0.5
            found[name] = down.requires_grad_(), torch.zeros(RANK, out, requires_grad=True)
        return found

    def embed(self, texts: Sequence[Sequence[int]], added: Learning) -> Tensor:
        """Unit vectors of texts, in chunks of about one length."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        size = -(-len(order) // CHUNKS)
        chunks = [order[start : start + size] for start in range(0, len(order), size)]
        rows = torch.cat([self._chunk([texts[place] for place in chunk], added) for chunk in chunks])
        return rows[torch.tensor(np.argsort(np.concatenate(chunks)))]

    def _chunk(self, texts: Sequence[Sequence[int]], added: Learning) -> Tensor:
        there = _there(texts)
        new = list({tuple(text) for text in texts} - set(self._begun))
        if new:
            with torch.no_grad():
                states = self._layers(self._first(new), _there(new), {}, 0, self._from)
            for text, row in zip(new, states, strict=True):
                self._begun[text] = row[: len(text)].to(torch.bfloat16).clone()
        begun = [self._begun[tuple(text)].float() for text in texts]
        states = torch.nn.utils.rnn.pad_sequence(begun, batch_first=True)
        states = self._layers(states, there, added, self._from, self._shape.layers).float()
        return functional.normalize((states * there[:, :, None]).sum(1), dim=1)

    def _first(self, texts: Sequence[Sequence[int]]) -> Tensor:
        longest, first = max(map(len, texts)), self._shape.first
        tokens = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])
        states = self._own[WORDS][tokens] + self._own[PLACES][first : first + longest]
        return self._normed(states, "embeddings.LayerNorm")

    def _layers(self, states: Tensor, there: Tensor, added: Learning, first: int, last: int) -> Tensor:
        count, longest, size = states.shape
        seen = torch.where(there, 0.0, -1e4)[:, None, None]
        if self._near is not None:
            seen = seen + torch.tensor(self._near[:, :longest, :longest])
        heads = self._shape.heads
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._half):
            for number in range(first, last):
                three = self._dense(states, f"{number}.qkv", added)
                query, key, value = three.view(count, longest, 3, heads, -1).permute(2, 0, 3, 1, 4)
                mixed = functional.scaled_dot_product_attention(
                    query,
                    key,
                    value,
                    attn_mask=seen.to(query.dtype).expand(count, heads, longest, longest),
                )
                mixed = mixed.transpose(1, 2).reshape(count, longest, size)
                states = states + self._dense(mixed, f"{number}.mixed", added)
                states = self._normed(states, f"{number}.mixed_norm")
                inner = self._dense(states, f"{number}.inner", added)
                inner = functional.gelu(inner, approximate="tanh")
                states = states + self._dense(inner, f"{number}.outer", added)
                states = self._normed(states, f"{number}.outer_norm")
        return states

    def _dense(self, states: Tensor, name: str, added: Learning) -> Tensor:
        result = states @ self._own[f"{name}.weight"] + self._own[f"{name}.bias"]
        if name in added:
            down, up = added[name]
            learns = torch.is_grad_enabled()
            result = result + functional.dropout(states @ down, DROPPED, training=learns) @ up
        return result

    def _normed(self, states: Tensor, name: str) -> Tensor:
        weight, bias = self._own[f"{name}.weight"], self._own[f"{name}.bias"]
        return functional.layer_norm(
            states.float(), (self._shape.dimension,), weight, bias, self._shape.epsilon
        )


def _there(texts: Sequence[Sequence[int]]) -> Tensor:
    """Where there is a token, (texts, tokens)."""
    lengths = torch.tensor([len(text) for text in texts])
    return torch.arange(int(lengths.max()))[None] < lengths[:, None]


def batches(lessons: Lessons, size: int) -> Iterator[tuple[list[int], list[list[int]]]]:
    """Places of so many messages for a step, and those to which no note of the same people matters, without end."""
    draw = random.Random(0)
    alone = size - len(lessons.people[0]) * PEOPLE
    singles, people = list(range(lessons.single)), list(range(len(lessons.people)))
    at = len(people)
    while True:
        draw.shuffle(singles)
        for start in range(0, len(singles) - alone + 1, alone):
            if at + PEOPLE > len(people):
                draw.shuffle(people)
                at = 0
            batch = singles[start : start + alone]
            some = people[at : at + PEOPLE]
            for person in some:
                batch += lessons.people[person]
            at += PEOPLE
            yield batch, [text for person in some for text in lessons.near[person]]


def loss_of(
    model: Model,
    lessons: Lessons,
    batch: list[int],
    near: list[list[int]],
    towers: Mapping[str, Learning],
    concern: Tensor,
    nothing: Tensor,
    draw: random.Random,
) -> Tensor:
    """How unlikely each message's own note, and its occasions, are among those of the batch and nothing at all, how far documents are
    from the encoder's own vectors, how unlikely it is that messages concern somebody, or nobody, as they do, and how far likelihoods
    are from the teacher's."""
    among = sorted({lessons.noted[place] for place in batch})
    place_of = {note: place for place, note in enumerate(among)}
    with torch.set_grad_enabled(lessons.own is not None):
        notes = model.embed([lessons.notes[note] for note in among], towers["note"])
    some = draw.sample(lessons.concerning, EACH) + draw.sample(lessons.idle, EACH)
    texts = [*(lessons.messages[place] for place in batch), *near, *some]
    messages = model.embed(texts, towers["message"])
    sounding = STEEP * (messages @ concern[:-1] + concern[-1])
    odds = SHARPNESS * messages @ notes.T
    row_of = torch.arange(len(texts))
    asked = row_of < len(batch)
    concerns = (row_of >= len(batch) + len(near)) & (row_of < len(texts) - EACH)
    neither = torch.zeros_like(odds)
    for row, place in enumerate(batch):
        for note in lessons.also[place]:
            if note in place_of:
                neither[row, place_of[note]] = -1e4
    wanted = torch.full((len(texts),), len(among))
    wanted[asked] = torch.tensor([place_of[lessons.noted[place]] for place in batch])
    choice = torch.hstack([odds + neither, (nothing[0] - sounding)[:, None]])
    unlikely = functional.cross_entropy(choice[~concerns], wanted[~concerns])
    phrased = [(note, text) for note in among for text in lessons.occasions.get(note, ())]
    with torch.set_grad_enabled(lessons.own is not None):
        phrases = model.embed([text for _, text in phrased], towers["note"])
    chances = torch.hstack([SHARPNESS * messages @ phrases.T, (nothing[1] - sounding)[:, None]])
    own = torch.full_like(chances, -1e4)
    own[~asked, -1] = 0
    known = ~concerns
    for row, place in enumerate(batch):
        known[row] = lessons.noted[place] in lessons.occasions
        fitting = {lessons.noted[place], *lessons.also[place]}
        own[row, [column for column, (note, _) in enumerate(phrased) if note in fitting]] = 0
    missed = (chances.logsumexp(1) - (chances + own).logsumexp(1))[known].mean()
    unlike = functional.binary_cross_entropy_with_logits(sounding[~asked], concerns[~asked].float())
    loss = unlikely + OCCASIONS * missed + CONCERN * unlike
    if lessons.own is not None:
        held = draw.sample(batch, HELD_TEXTS)
        documents = model.embed([lessons.messages[place] for place in held], towers["note"])
        away = 2 - (notes * lessons.own[0][among]).sum(1).mean()
        loss = loss + HELD * (away - (documents * lessons.own[1][held]).sum(1).mean())
    if lessons.teacher is not None:
        told = SOFT * SHARPNESS * lessons.teacher[0][batch] @ lessons.teacher[1][among].T
        loss = loss + TAUGHT * functional.kl_div(
            (SOFT * odds[asked]).log_softmax(1), told.softmax(1), reduction="batchmean"
        )
    return loss


def towers_learnt(name: str, encoder: Model, before: Taught | None) -> dict[str, Learning]:
    """Both towers, by name: from nothing, or that of messages on from what was taught `before`."""
    torch.manual_seed(0)
    lessons, draw = lessons_of(name, encoder, before), random.Random(1)
    towers = {tower: encoder.added(seed) for seed, tower in enumerate(TOWERS)}
    pace, steps, size = PACES[name], EPOCHS * len(lessons.messages) // BATCH, BATCH
    learns = tuple(TOWERS)
    if before is not None:
        towers = {"message": learnt_of(before.messages), "note": learnt_of(before.notes)}
        learns = ("message",)
        pace, steps, size = ON[name]
    learning = [
        half.requires_grad_() for tower in learns for both in towers[tower].values() for half in both
    ]
    concern = lessons.concern.clone().requires_grad_()
    nothing = torch.tensor([NOTHING, NOTHING], requires_grad=True)
    paces = {pace: [*learning, concern], NOTHING_PACE: [nothing]}
    adam = torch.optim.Adam([{"params": each, "pace": most} for most, each in paces.items()])
    steady = batches(lessons, size)
    started, lost = time.monotonic(), 0.0
    for step in range(1, steps + 1):
        for group in adam.param_groups:
            group["lr"] = group["pace"] * min(
                1, step / min(WARM, steps // 3), SLOW * (1 - step / (steps + 1))
            )
        batch, near = next(steady)
        loss = loss_of(encoder, lessons, batch, near, towers, concern, nothing, draw)
        adam.zero_grad()
        loss.backward()
        adam.step()
        lost += float(loss.detach())
        if step % 10 == 0:
            took = time.monotonic() - started
            print(f"{step}/{steps} {lost / 10:.3f} {nothing.tolist()} {took:.0f} s", flush=True)
            lost = 0.0
    return towers


def learnt_of(tower: Tower) -> Learning:
    """The products that a tower adds, as it is read from a file, with numbers as large as those that `added` begins with."""
    found = {}
    for part, (down, scale, up) in tower.items():
        size = 1 / (np.sqrt(len(down) * (down.astype(np.float32) ** 2).mean(axis=0)) + 1e-12)
        wide = up.astype(np.float32) * (scale / size)[:, None]
        found[part] = torch.tensor((down * size).astype(np.float32)), torch.tensor(wide)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(": ")[0])
    parser.add_argument("name", choices=list(OWN))
    parser.add_argument("--concern", action="store_true", help="leave the towers as they are")
    parser.add_argument("--messages", action="store_true", help="teach that of messages further, alone")
    given = parser.parse_args()
    name, encoder = given.name, Model(given.name)
    before = taught(name) if given.concern or given.messages else None
    kept: dict[str, Tower] = {}
    if before is not None:  # to the byte: people's vectors are known by it
        kept = {"note": before.notes} | ({"message": before.messages} if given.concern else {})
    learnt = {} if given.concern else towers_learnt(name, encoder, before)
    towers = {
        tower: tower_of(
            {part: (down.detach().numpy(), up.detach().numpy()) for part, (down, up) in each.items()}
        )
        for tower, each in learnt.items()
    } | kept
    examples = example_notes("en")
    messages = encoder.embed_texts(examples.messages[::5], learnt_of(towers["message"])).numpy()
    notes = encoder.embed_texts(examples.notes[::5], learnt_of(towers["note"])).numpy()
    some, own_life = encoder_examples(name)
    near = [text for person in example_people("en") for text in person["idle"]]
    near = near[::5]  # as of the other idle ones
    talks = [one for person in example_people("en") for one in person["talks"]]
    texts = [*some, *near, *(in_context(one["talk"]) for one in talks)]
    personal = [*own_life, *(False for _ in near), *(one["note"] is not None for one in talks)]
    sounding = encoder.embed_texts(texts, learnt_of(towers["message"])).numpy()
    scale = calibration(messages @ notes.T)
    concern = encoder_lesson(sounding, personal)
    keep(file_of(name), lambda file: write(file, towers, concern, *scale))


if __name__ == "__main__":
    main()
