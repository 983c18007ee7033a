"""Milliseconds per message that `/ingest/` takes in, by messages per call, beside bare SQLite and full text.

Made-up messages of one user go through the whole REST stack into a database of the benchmark's own, until one session
holds all of them; they are searchable when a call answers. Only ratios of one run mean much.
"""

import statistics
from argparse import ArgumentParser
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.test import Client

from benchmarks._baselines import bare_database
from benchmarks._scratch import Corpus, api_client, make_user, scratch_database
from benchmarks.report import Report, timed

MESSAGES = 20_000
BATCHES = (1, 20, 1000)
SINGLES = 50
"""Calls of each size but the largest, which takes in what is left of the messages."""
GROWTH = 1.3


@dataclass
class Run:
    """A program that sends messages. `sent` counts them."""

    client: Client
    corpus: Corpus
    sent: int = 0
    found: list[bool] = field(default_factory=list)

    def send(self, count: int, *, extract: bool, again: bool = False) -> float:
        """Milliseconds per message of one call with the next `count` messages; `again`: with the last ones once more."""
        first = self.sent - count if again else self.sent
        messages = [
            {"role": "user", "content": text, "external_id": f"m{first + place}"}
            for place, text in enumerate(self.corpus.notes(count))
        ]
        body = {"session": "talk", "messages": messages, "extract": extract}
        answer, took = timed(partial(self._post, "ingest", body))
        assert answer["added" if not again else "repeated"] == count
        if not again:
            self.sent += count
            newest = messages[-1]
            hits = self._post("search", {"query": newest["content"], "top_k": 5})["results"]
            self.found.append(newest["external_id"] in [hit["external_id"] for hit in hits])
        return took / count

    def _post(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post(f"/api/v1/{name}/", body, content_type="application/json")
        assert answer.status_code in {200, 202}, answer.content[:300]
        found: dict[str, Any] = answer.json()
        return found


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=MESSAGES, metavar="N", help="in all, at least")
    parser.add_argument(
        "--extract",
        action="store_true",
        help="have them wait to be read for memories, as by default over REST",
    )


def run(options: dict[str, Any]) -> Report:
    wanted, extract = options["messages"], options["extract"]
    report = Report("ingest", settings={"messages": wanted, "extract": extract, "embedder": "static"})
    with scratch_database() as path, bare_database(path.with_name("bare.sqlite3")) as bare:
        program = Run(api_client(make_user("alice")), Corpus())
        section = report.section(
            "Taking in messages (milliseconds each)",
            ["messages per call", "p50", "slowest", "floor", "ratio"],
        )
        largest: list[float] = []
        for batch in BATCHES:
            calls = SINGLES if batch < BATCHES[-1] else max(2, (wanted - program.sent) // batch)
            program.send(batch, extract=extract)
            times = [program.send(batch, extract=extract) for _ in range(calls)]
            # The same rows with text, vector and full text, one transaction per call; by message.
            floor = (
                bare.insert_single(program.corpus.notes(SINGLES)).p50
                if batch == 1
                else bare.insert_bulk(program.corpus.notes(batch))
            )
            middle = statistics.median(times)
            section.add(f"{batch:,}", middle, max(times), floor, middle / floor)
            largest = times
        again = program.send(BATCHES[-1], extract=extract, again=True)
        section.add(f"{BATCHES[-1]:,} that came before", again, None, None, None)
    quarter = max(1, len(largest) // 4)
    growth = statistics.median(largest[-quarter:]) / statistics.median(largest[:quarter])
    report.settings["messages of the session at the end"] = program.sent
    report.aims["what was sent is found when the call answers"] = all(program.found)
    report.aims[
        f"a long session takes in messages as fast as a short one: at most {GROWTH} × ({growth:.2f} ×)"
    ] = growth <= GROWTH
    return report
