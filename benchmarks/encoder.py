"""Measures an embedder: its calibration (`noise`, `match`) and its speed, beside the bundled vectors.

Pairs of sentences that say the same in other words, written for this, and all other pairs of the same sentences, which
have nothing to do with each other. `noise` is the cosine that three of four of the latter stay below, and `match` the
median of the former.
"""

from argparse import ArgumentParser
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.search.embedders.base import Embedder
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder
from benchmarks import _encoders
from benchmarks.report import Report, Timing, timed

SAME = (
    ("My sister lives in Lisbon.", "Lisbon is where my sister lives."),
    ("I am allergic to peanuts.", "I have a peanut allergy."),
    ("The car has to be inspected in March.", "The car's inspection is due in March."),
    ("Anna prefers tea to coffee.", "Anna likes tea better than coffee."),
    ("We adopted a cat called Mimi.", "We have taken in a cat; her name is Mimi."),
    ("The dentist's appointment is on Tuesday at nine.", "I see the dentist at nine on Tuesday."),
    ("He works as a nurse at the city hospital.", "He is a nurse in the hospital in town."),
    ("The Wi-Fi password is on the fridge.", "You find the Wi-Fi password on the fridge door."),
    ("I run five kilometres every morning.", "Each morning I go for a five kilometre run."),
    ("Our wedding anniversary is on 4 June.", "We got married on 4 June."),
    ("She speaks French and Italian.", "She can speak both French and Italian."),
    ("The bakery on the corner closes on Mondays.", "On Mondays the corner bakery is closed."),
    ("I cannot stand loud music.", "I hate loud music."),
    ("The heating was repaired last winter.", "Last winter we had the heating repaired."),
    ("My laptop runs Linux.", "I use Linux on my laptop."),
    ("Tom is afraid of flying.", "Tom has a fear of flying."),
    ("The rent is paid on the first of each month.", "Rent is due on the first day of the month."),
    ("I would like answers to be short.", "Please keep your answers short."),
    ("Grandma's recipe needs two cups of flour.", "Two cups of flour go into Grandma's recipe."),
    ("The meeting was moved to Thursday.", "They have postponed the meeting to Thursday."),
    ("Our son starts school in September.", "In September our son will begin school."),
    ("I sold my old bicycle.", "I have sold the old bike that I had."),
    ("The garden gets too little rain.", "It does not rain enough for the garden."),
    ("Maria broke her arm while skiing.", "Maria's arm was broken in a skiing accident."),
    ("The spare key is with the neighbours.", "The neighbours keep our spare key."),
    ("I pay the gym forty euros a month.", "My gym costs forty euros monthly."),
    ("We are saving for a house.", "We put money aside to buy a house."),
    ("His favourite film is a western.", "The film he likes best is a western."),
    ("The train to Vienna leaves at seven.", "At seven the train departs for Vienna."),
    ("I learnt to play the piano as a child.", "As a child I was taught to play the piano."),
    ("The server is backed up every night.", "Backups of the server are made nightly."),
    ("Paul does not eat meat.", "Paul is a vegetarian."),
    ("My glasses are too weak by now.", "I need stronger glasses."),
    ("The paint in the hall is peeling.", "Paint is coming off in the hall."),
    ("She finished her thesis about bees.", "Her thesis about bees is done."),
    ("I have been a member of the choir since 2019.", "I joined the choir in 2019."),
    ("The dog has to be walked twice a day.", "Take the dog for a walk two times a day."),
    ("Our boss comes from Canada.", "Our manager is Canadian."),
    ("The parcel arrived damaged.", "The package was broken when it came."),
    ("I take the blue pill before breakfast.", "The blue tablet is for before breakfast."),
)
SHARES = (10, 25, 50, 75, 90)
TEXTS = 256
SINGLES = 20
NOISE_SHARE, MATCH_SHARE = 75, 50
"""Percentiles of the cosines of unrelated pairs, and of pairs that say the same."""


def add_arguments(parser: ArgumentParser) -> None:
    _encoders.add_argument(parser)


def run(options: dict[str, Any]) -> Report:
    with _encoders.encoder_for(options):
        report = Report("encoder", settings={"embedder": settings.IZZY_EMBEDDER, "pairs": len(SAME)})
        names = dict.fromkeys((settings.IZZY_EMBEDDER, StaticEmbedder.name))
        embedders = [embedder_for(name) for name in names]
        _calibration(report, embedders)
        _speed(report, embedders)
    return report


def _calibration(report: Report, embedders: list[Embedder]) -> None:
    cells = [f"{share} %" for share in SHARES]
    section = report.section("Cosines", ["embedder", "percentile of pairs that", *cells], digits=3)
    rows = report.section(
        "Calibration", ["embedder", "noise", "noise in use", "match", "match in use"], digits=2
    )
    for embedder in embedders:
        same, other = cosines(embedder)
        for name, found in (("say the same", same), ("are unrelated", other)):
            section.add(embedder.name, name, *np.percentile(found, SHARES).tolist())
        noise, match = np.percentile(other, NOISE_SHARE), np.percentile(same, MATCH_SHARE)
        rows.add(embedder.name, float(noise), embedder.noise, float(match), embedder.match)


def cosines(embedder: Embedder) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of the pairs that say the same, and of all the others."""
    ones, twos = (embedder.embed_documents(side) for side in zip(*SAME, strict=True))
    products = ones @ twos.T
    return products.diagonal(), products[~np.eye(len(SAME), dtype=bool)]


def _speed(report: Report, embedders: list[Embedder]) -> None:
    section = report.section("Speed", ["embedder", "texts per second", "one text p50 ms", "p95 ms"])
    sentences = [sentence for pair in SAME for sentence in pair]
    texts = [f"{sentences[n % len(sentences)]} {n}" for n in range(TEXTS)]
    for embedder in embedders:
        embed = embedder.embed_documents
        took = min(timed(partial(embed, texts))[1] for _ in range(2))
        single = Timing.of([timed(partial(embed, [text]))[1] for text in texts[:SINGLES]])
        section.add(embedder.name, 1000 * TEXTS / took, *single)
