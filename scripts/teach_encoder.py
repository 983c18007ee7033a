"""Makes `apps/search/embedders/minilm_taught.npz` of the English examples of `apps/search/proactive/`: `python scripts/teach_minilm.py`.

Needs PyTorch beside Izzy's packages (`uv pip install torch`); two cores take about a quarter of an hour. Both towers begin as the
encoder is, and learn together that of the notes in a batch each message's own is the most likely (softmax of cosines, as in InfoNCE).
Batches mix messages of anybody's with those of whole people, whose other notes do not matter. The messages' tower learns beside
to tell those that concern whoever wrote them from those that do not. Documents are held to what the encoder made of them, for
questions, which it embeds as it came, to find them. The towers learn nothing from the people of `benchmarks/people/`.
"""

import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from apps.search.embedders import minilm, minilm_taught
from apps.search.embedders.minilm import DIMENSION, EPSILON, HEAD, HEADS, LAYERS, WORDS
from apps.search.embedders.minilm_taught import Tower
from apps.search.kept import keep
from apps.search.proactive.adapter import calibration, example_notes, example_people
from apps.search.proactive.concern import encoder_examples, encoder_lesson, example_messages

RANK = 16
EPOCHS, BATCH, PACE = 2, 256, 1e-3
"""Passes over all messages, messages a step, and the most that Adam moves a number in a step."""
PEOPLE = 4
"""Of each of them all 30 messages are in a batch."""
WARM, SLOW = 30, 1.5
"""Steps until the full pace; it falls from 1 / SLOW of the way before the end."""
SHARPNESS = 20.0
"""Log-odds of a cosine of 1."""
HELD = 0.5
"""The cost of a document's vector that is orthogonal to the encoder's own."""
CONCERN, STEEP = 1.0, 3.0
"""The cost of a message whose concern is as likely as not, and how fast the odds of concern rise with it."""
EACH = 64
"""Messages a step that concern somebody, and that concern nobody."""
DROPPED = 0.1
HELD_TEXTS = 96
"""Messages a step that, as documents, are held to the encoder's own vectors, too."""
MOST_TOKENS = 64
CHUNKS = 4
MATRICES = [
    f"encoder.layer.{number}.{name}"
    for number in range(LAYERS)
    for name in ("qkv", "attention.output.dense", "intermediate.dense", "output.dense")
]

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
    note_vectors: Tensor
    message_vectors: Tensor
    """As the encoder came."""
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


def lessons_of(encoder: minilm.MiniLM) -> Lessons:
    """All English examples, those of whole people last."""
    examples, people = example_notes("en"), example_people("en")
    place = len(examples.notes) - sum(len(person["notes"]) for person in people)
    single = sum(noted < place for noted in examples.noted)
    messages, noted = list(examples.messages[:single]), list(examples.noted[:single])
    also: list[list[int]] = [[] for _ in messages]
    groups = []
    for person in people:
        groups.append(list(range(len(messages), len(messages) + len(person["messages"]))))
        for said in person["messages"]:
            messages.append(said["text"])
            noted.append(place + said["note"])
            also.append([place + other for other in said["also"]])
        place += len(person["notes"])
    notes, texts = (
        [tokens[:MOST_TOKENS] for tokens in encoder.tokens(each)] for each in (examples.notes, messages)
    )
    own = [torch.tensor(encoder.embed(each)) for each in (examples.notes, messages)]
    kinds: tuple[list[str], list[str]] = [], []
    judged = judged_messages()
    for text, own_life in zip(*example_messages("en"), strict=True):
        if text.casefold() not in judged:
            kinds[own_life].append(text)
    idle, concerning = ([tokens[:MOST_TOKENS] for tokens in encoder.tokens(each)] for each in kinds)
    some = [kind[:: -(-len(kind) // 1500)] for kind in kinds]
    personal = [False] * len(some[0]) + [True] * len(some[1])
    concern = encoder_lesson(encoder.embed([*some[0], *some[1]]), personal)
    return Lessons(
        notes,
        texts,
        noted,
        also,
        groups,
        own[0],
        own[1],
        single,
        concerning,
        idle,
        torch.tensor(concern),
    )


class Model:
    """The encoder in PyTorch, with what is added to its matrices."""

    def __init__(self, encoder: minilm.MiniLM) -> None:
        self._own = {
            name: torch.tensor(np.asarray(value, np.float32)) for name, value in encoder.weights.items()
        }
        for name in MATRICES:
            self._own[name] = self._own.pop(f"{name}.weight").T.contiguous()

    def added(self, seed: int) -> Learning:
        """The products added at first, which change nothing."""
        draw = torch.Generator().manual_seed(seed)
        found = {}
        for name in MATRICES:
            out, size = self._own[name].shape
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
        lengths = torch.tensor([len(text) for text in texts])
        longest = int(lengths.max())
        tokens = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])
        there = torch.arange(longest)[None] < lengths[:, None]
        states = self._own[WORDS][tokens] + self._own["embeddings.position_embeddings.weight"][:longest]
        states = self._normed(
            states + self._own["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm"
        )
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}."
            heads = self._dense(states, f"{layer}qkv", added).view(*tokens.shape, 3, HEADS, HEAD)
            query, key, value = heads.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=there[:, None, None]
            )
            mixed = mixed.transpose(1, 2).reshape(*tokens.shape, DIMENSION)
            states = states + self._dense(mixed, f"{layer}attention.output.dense", added)
            states = self._normed(states, f"{layer}attention.output.LayerNorm")
            inner = functional.gelu(
                self._dense(states, f"{layer}intermediate.dense", added), approximate="tanh"
            )
            states = self._normed(
                states + self._dense(inner, f"{layer}output.dense", added), f"{layer}output.LayerNorm"
            )
        sums = (states * there[:, :, None]).sum(1)
        return functional.normalize(sums, dim=1)

    def _dense(self, states: Tensor, name: str, added: Learning) -> Tensor:
        result = functional.linear(states, self._own[name], self._own[f"{name}.bias"])
        if name in added:
            down, up = added[name]
            result = result + functional.dropout(states @ down, DROPPED) @ up
        return result

    def _normed(self, states: Tensor, name: str) -> Tensor:
        weight, bias = self._own[f"{name}.weight"], self._own[f"{name}.bias"]
        return functional.layer_norm(states, (DIMENSION,), weight, bias, EPSILON)


def batches(lessons: Lessons) -> Iterator[list[int]]:
    """Places of the messages of a step, without end."""
    draw = random.Random(0)
    alone = BATCH - 30 * PEOPLE
    singles, people = list(range(lessons.single)), list(lessons.people)
    at = len(people)
    while True:
        draw.shuffle(singles)
        for start in range(0, len(singles) - alone + 1, alone):
            if at + PEOPLE > len(people):
                draw.shuffle(people)
                at = 0
            batch = singles[start : start + alone]
            for person in people[at : at + PEOPLE]:
                batch += person
            at += PEOPLE
            yield batch


def loss_of(
    model: Model,
    lessons: Lessons,
    batch: list[int],
    towers: Mapping[str, Learning],
    concern: Tensor,
    draw: random.Random,
) -> Tensor:
    """How unlikely each message's own note is among those of the batch, how far documents are from the encoder's own vectors, and
    how unlikely it is that messages concern somebody, or nobody, as they do."""
    among = sorted({lessons.noted[place] for place in batch})
    place_of = {note: place for place, note in enumerate(among)}
    messages = model.embed([lessons.messages[place] for place in batch], towers["message"])
    notes = model.embed([lessons.notes[note] for note in among], towers["note"])
    odds = SHARPNESS * messages @ notes.T
    neither = torch.zeros_like(odds)
    for row, place in enumerate(batch):
        for note in lessons.also[place]:
            if note in place_of:
                neither[row, place_of[note]] = -1e4
    wanted = torch.tensor([place_of[lessons.noted[place]] for place in batch])
    held = draw.sample(batch, HELD_TEXTS)
    documents = model.embed([lessons.messages[place] for place in held], towers["note"])
    away = 2 - (notes * lessons.note_vectors[among]).sum(1).mean()
    away = away - (documents * lessons.message_vectors[held]).sum(1).mean()
    some = draw.sample(lessons.concerning, EACH) + draw.sample(lessons.idle, EACH)
    sounding = STEEP * (model.embed(some, towers["message"]) @ concern[:-1] + concern[-1])
    truly = torch.tensor([1.0] * EACH + [0.0] * EACH)
    unlike = functional.binary_cross_entropy_with_logits(sounding, truly)
    return functional.cross_entropy(odds + neither, wanted) + HELD * away + CONCERN * unlike


def towers_learnt(encoder: minilm.MiniLM) -> dict[str, Tower]:
    """Both towers, by name; the same on a machine each time."""
    torch.manual_seed(0)
    model, lessons, draw = Model(encoder), lessons_of(encoder), random.Random(1)
    towers = {name: model.added(seed) for seed, name in enumerate(minilm_taught.TOWERS)}
    learning = [half for tower in towers.values() for both in tower.values() for half in both]
    concern = lessons.concern.clone().requires_grad_()
    adam = torch.optim.Adam([*learning, concern])
    steps, steady = EPOCHS * len(lessons.messages) // BATCH, batches(lessons)
    started, lost = time.monotonic(), 0.0
    for step in range(1, steps + 1):
        for group in adam.param_groups:
            group["lr"] = PACE * min(1, step / WARM, SLOW * (1 - step / (steps + 1)))
        loss = loss_of(model, lessons, next(steady), towers, concern, draw)
        adam.zero_grad()
        loss.backward()
        adam.step()
        lost += float(loss.detach())
        if step % 25 == 0:
            print(f"{step}/{steps} {lost / 25:.3f} {time.monotonic() - started:.0f} s", flush=True)
            lost = 0.0
    return {
        name: minilm_taught.tower_of(
            {
                matrix: (down.detach().numpy(), up.detach().numpy())
                for matrix, (down, up) in tower.items()
            }
        )
        for name, tower in towers.items()
    }


def main() -> None:
    """`--concern` leaves the towers as they are."""
    encoder = minilm.model()
    if "--concern" in sys.argv:
        before = minilm_taught.taught()
        towers = dict(zip(minilm_taught.TOWERS, (before.messages, before.notes), strict=True))
    else:
        towers = towers_learnt(encoder)
    examples = example_notes("en")
    messages = encoder.embed(examples.messages, towers["message"])
    notes = encoder.embed(examples.notes, towers["note"])
    texts, personal = encoder_examples(minilm.MiniLMEmbedder.name)
    concern = encoder_lesson(encoder.embed(texts, towers["message"]), personal)
    scale = calibration(messages @ notes.T)
    keep(minilm_taught.FILE, lambda file: minilm_taught.write(file, towers, concern, *scale))


if __name__ == "__main__":
    main()
