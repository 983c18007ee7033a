"""Search and saving beside other stores of memories: mem0, Chroma, LanceDB, sqlite-vec, on the same notes and vectors.

They are installed into an environment of their own, which nothing else uses:

    .tools/uv/bin/uv venv .tools/peers
    .tools/uv/bin/uv pip install --python .tools/peers/bin/python -r benchmarks/peers/requirements.txt

Peers are given finished vectors. Izzy works out its own, analyses the words, ranks by more than the vector and reads the
rows: a figure of its share without embedding and analysis stands beside.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.report import Report

SIZES = (1_000, 10_000)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="NOTES")
    parser.add_argument(
        "--python",
        type=Path,
        default=Path(".tools/peers/bin/python"),
        metavar="FILE",
        help="of the environment that has the peers",
    )


def run(options: dict[str, Any]) -> "Report":
    from benchmarks.peers import _running  # the peers' own processes have no Django

    return _running.run(options["sizes"], options["python"])
