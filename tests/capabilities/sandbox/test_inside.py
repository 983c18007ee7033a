"""The programs within the sandboxes, by themselves: what timing would rarely show."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apps.capabilities.sandbox.bubblewrap import inside
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from apps.capabilities.sandbox.e2b.answers import inside_script
from tests.waiting import PATIENCE

from .backend_suite import opened

ENDED_BEFORE_IT_WAS_READ = """
import os, select, sys
sys.path.insert(0, {folder!r})
from inside import children, runner
real = select.select
def late(*args):
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # the tool has answered and ended
    select.select = real
    return [], [], []
select.select = late
reading, writing = os.pipe()
pid = children.fork()
if pid == 0:
    os.write(writing, children.packed(b'"done"'))
    os._exit(0)
print(children.await_frame(reading, pid, 100))
children.kill(pid)
"""


def test_a_tool_that_ends_before_its_answer_was_read_is_no_accident() -> None:
    """The runner used to send it a signal then, and died of its having gone."""
    script = ENDED_BEFORE_IT_WAS_READ.format(folder=str(Path(inside.__file__).parent.parent))
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (ran.stdout, ran.stderr) == ("b'\"done\"'\n", "")


async def test_a_tool_may_name_its_own_files_like_those_of_the_runner(
    bubblewrap: BubblewrapBackend,
) -> None:
    files = {
        "main.py": "import inside, answers\ndef run(args): return inside.word + answers.word",
        "inside.py": "word = 'its '",
        "answers.py": "word = 'own'",
    }
    async with opened(bubblewrap) as sandbox:
        assert (await sandbox.run_capability(files, {})).result == "its own"


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        ("def run(args): return args['word']", {"result": "ä"}),
        ("def run(args): return 5", {"code": "bad_result"}),
        ("def run(args): raise ValueError('wrong')", {"code": "raised"}),
        ("def run(args): return 'x' * 1000", {"code": "bad_result"}),
        ("import os\ndef run(args): os._exit(3)", {"code": "raised"}),
    ],
)
def test_the_program_for_e2b_needs_nothing_but_itself(
    tmp_path: Path, main: str, expected: dict[str, str]
) -> None:
    own, home = tmp_path / ".izzy", tmp_path
    own.mkdir()
    (own / "inside.py").write_text(inside_script())
    (home / "main.py").write_text(main)
    job = {"mark": "MARK", "args": {"word": "ä"}, "result_bytes": 500, "memory_bytes": 10**9}
    (own / "job.json").write_text(json.dumps(job | {"cpu_seconds": 10, "file_bytes": 10**6}))
    ran = subprocess.run(
        [sys.executable, "-I", "-B", str(own / "inside.py")],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={},
    )
    assert ran.stderr == ""
    answer = json.loads(ran.stdout.partition("MARK ")[2])
    assert {name: answer[name] for name in expected} == expected
    assert "inside.py" not in answer.get("message", "")
