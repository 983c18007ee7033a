"""Each test really tries one of the things that a hostile tool would; each is contained, and nothing is left running."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from apps.capabilities.sandbox.base import BUILD_LIMITS, ErrorCode, Purpose, RunResult
from apps.capabilities.sandbox.bubblewrap import processes
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from tests.waiting import PATIENCE, until

from .backend_suite import code_of, opened, own_processes, run_main, small, spec

pytestmark = pytest.mark.usefixtures("nothing_left_running")

SYSCALL = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return errno.errorcode.get(ctypes.get_errno(), 'OK') if result < 0 else 'OK'
"""


@pytest.fixture
def nothing_left_running() -> Iterator[None]:
    others = own_processes()
    yield
    assert not own_processes(others)


async def tried(backend: BubblewrapBackend, body: str, **changed: Any) -> RunResult:
    """The lines as the body of run(args)."""
    main = "def run(args):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return await run_main(backend, main, **changed)


async def refused_with(backend: BubblewrapBackend, body: str) -> str:
    """The name of the exception that the body ends in."""
    outcome = await tried(backend, body)
    assert outcome.error is not None, outcome.result
    return outcome.error.message.splitlines()[-1]


# --- what it may not see ---


async def test_it_cannot_read_the_passwords_of_the_host(bubblewrap: BubblewrapBackend) -> None:
    assert "FileNotFoundError" in await refused_with(bubblewrap, "return open('/etc/shadow').read()")


async def test_it_cannot_see_the_data_directory_or_the_program(bubblewrap: BubblewrapBackend) -> None:
    database = Path(settings.IZZY_DATA_DIR) / "izzy.sqlite3"
    for place in (database, settings.BASE_DIR, Path.home() / ".ssh", settings.IZZY_SANDBOX_DIR):
        body = f"import os\nreturn str(os.path.exists({str(place)!r}))"
        if not str(place).startswith("/home/user"):
            assert (await tried(bubblewrap, body)).result == "False"


async def test_it_sees_no_environment_but_its_own(
    bubblewrap: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IZZY_TEST_SECRET", "host-secret-value")
    body = """
        import glob
        found = b''
        for name in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):
            try: found += open(name, 'rb').read()
            except OSError: pass
        return found.decode('utf-8', 'replace').replace(chr(0), ' ')
    """
    outcome = await tried(bubblewrap, body, env={"OWN": "own-value"})
    assert "host-secret-value" not in (outcome.result or "")
    assert "IZZY" not in (outcome.result or "")


async def test_it_sees_no_process_but_its_own(bubblewrap: BubblewrapBackend) -> None:
    body = "import os\nreturn str(sorted(int(n) for n in os.listdir('/proc') if n.isdigit())[-1] < 20)"
    assert (await tried(bubblewrap, body)).result == "True"


async def test_it_is_no_root_and_has_no_capabilities(bubblewrap: BubblewrapBackend) -> None:
    body = "return next(l for l in open('/proc/self/status') if l.startswith('CapEff')) + ' ' + str(__import__('os').getuid())"
    outcome = await tried(bubblewrap, body)
    assert (outcome.result or "").split() == ["CapEff:", "0000000000000000", "1000"]


async def test_the_host_runs_it_as_no_root(bubblewrap: BubblewrapBackend) -> None:
    others = own_processes()
    async with opened(bubblewrap) as sandbox:
        owners = {os.stat(f"/proc/{pid}").st_uid for pid in own_processes(others)}
        await sandbox.close()
    assert owners
    assert 0 not in owners


# --- what it may not write ---


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/usr/bin/x",
        "/etc/x",
        "/opt/x",
        "/dev/x",
        "/opt/izzy/inside/x.py",
        "/proc/sys/kernel/hostname",
    ],
)
async def test_it_cannot_write_outside(bubblewrap: BubblewrapBackend, path: str) -> None:
    assert "Error" in await refused_with(bubblewrap, f"open({path!r}, 'w').write('x')\nreturn ''")


async def test_it_cannot_fill_the_disk(bubblewrap: BubblewrapBackend) -> None:
    body = """
        total = 0
        for number in range(20):
            with open(f'/tmp/{number}', 'wb') as file:
                for _ in range(50): total += file.write(bytes(1_000_000))
        return str(total)
    """
    assert "No space left" in await refused_with(bubblewrap, body)


async def test_one_file_has_a_limit(bubblewrap: BubblewrapBackend) -> None:
    body = "open('/dev/shm/a', 'wb').truncate(10**12)\nreturn ''"
    assert "File too large" in await refused_with(bubblewrap, body)


async def test_a_flood_of_inodes_is_ended(bubblewrap: BubblewrapBackend) -> None:
    body = """
        for number in range(10_000_000):
            open(f'/tmp/{number}', 'w').close()
        return 'done'
    """
    outcome = await tried(bubblewrap, body, limits=small(files=5000))
    assert code_of(outcome) == ErrorCode.LIMIT_EXCEEDED


# --- memory, processes, time, output ---


async def test_8_gb_cannot_be_had(bubblewrap: BubblewrapBackend) -> None:
    outcome = await tried(bubblewrap, "x = bytearray(8_000_000_000)\nreturn ''")
    assert code_of(outcome) == ErrorCode.OUT_OF_MEMORY


@pytest.mark.parametrize("processes_number", [1, 8])
async def test_touching_too_much_memory_ends_it(
    bubblewrap: BubblewrapBackend, processes_number: int
) -> None:
    body = f"""
        import os, time
        for _ in range({processes_number} - 1):
            if os.fork() == 0: break
        kept = []
        for _ in range({1500 // processes_number}):
            kept.append(bytearray(b'x') * 1_000_000)
        time.sleep(20)
        return ''
    """
    outcome = await tried(bubblewrap, body)
    assert code_of(outcome) == ErrorCode.OUT_OF_MEMORY


async def test_workers_that_share_their_memory_are_not_counted_for_each(
    bubblewrap: BubblewrapBackend,
) -> None:
    body = """
        import os, time
        shared = bytearray(b'x') * 150_000_000
        for _ in range(6):
            if os.fork() == 0:
                time.sleep(0.6)
                os._exit(0)
        time.sleep(0.5)
        return str(len(shared))
    """
    assert (await tried(bubblewrap, body)).result == "150000000"


@pytest.mark.parametrize(
    "flags", ["MAP_SHARED | mmap.MAP_ANONYMOUS", "MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000"]
)
async def test_memory_that_nobody_counts_cannot_be_had(
    bubblewrap: BubblewrapBackend, flags: str
) -> None:
    body = f"import mmap\nmmap.mmap(-1, 4_194_304, flags=mmap.{flags})\nreturn ''"
    assert "Error" in await refused_with(bubblewrap, body)


async def test_shared_memory_over_dev_zero_cannot_be_had(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import mmap, os
        mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1_000_000)
        return ''
    """
    assert "Error" in await refused_with(bubblewrap, body)


async def test_page_tables_count_towards_its_memory(bubblewrap: BubblewrapBackend) -> None:
    """Reading one byte of each two megabytes touches no memory of its own, but fills a page of tables each."""
    body = """
        import mmap, os, time
        step, pieces = 1 << 21, 1500
        for _ in range(30):
            if os.fork() == 0:
                area = mmap.mmap(-1, step * pieces, flags=mmap.MAP_PRIVATE | 0x4000, prot=mmap.PROT_READ)
                for piece in range(pieces): area[piece * step]
                time.sleep(60)
        time.sleep(60)
        return ''
    """
    outcome = await tried(bubblewrap, body, limits=small(memory_bytes=150_000_000, wall_seconds=60))
    assert code_of(outcome) == ErrorCode.OUT_OF_MEMORY


async def test_memory_cut_into_very_many_pieces_ends_it(bubblewrap: BubblewrapBackend) -> None:
    """The kernel describes each piece in memory of its own: 40 processes of 32,000 pieces took 235 MB."""
    body = """
        import ctypes, mmap, time
        area = mmap.mmap(-1, 40_000 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        protect = ctypes.CDLL(None).mprotect
        for piece in range(20_000): protect(ctypes.c_void_p(start + piece * 8192), 4096, 1)
        time.sleep(60)
        return ''
    """
    assert (
        code_of(await tried(bubblewrap, body, limits=small(wall_seconds=60))) == ErrorCode.OUT_OF_MEMORY
    )


async def test_it_can_have_no_terminals(bubblewrap: BubblewrapBackend) -> None:
    assert "Error" in await refused_with(bubblewrap, "import os\nos.openpty()\nreturn ''")
    assert "Error" in await refused_with(bubblewrap, "open('/dev/ptmx')\nreturn ''")


async def test_it_has_the_devices_that_programs_need_and_no_others(
    bubblewrap: BubblewrapBackend,
) -> None:
    body = """
        import os
        open('/dev/null', 'w').write('gone')
        works = open('/dev/zero', 'rb').read(2) == b'\\0\\0' and len(open('/dev/urandom', 'rb').read(2)) == 2
        return f"{works} {sorted(os.listdir('/dev'))}"
    """
    names = ["full", "null", "random", "shm", "urandom", "zero"]
    assert (await tried(bubblewrap, body)).result == f"True {names}"


async def test_the_limits_of_what_serves_it_stay(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
    """
    assert "PermissionError" in await refused_with(bubblewrap, body)


async def test_watches_of_files_are_left_to_the_hosts_programs(bubblewrap: BubblewrapBackend) -> None:
    """The kernel counts them for each user, and where Izzy runs as an ordinary one that is the user itself."""
    body = f"{SYSCALL}\ndef run(args): return str(libc.inotify_init1(0))"
    assert (await run_main(bubblewrap, body)).result == "-1"


async def test_its_mount_table_names_no_user_and_no_folder_of_the_data(
    bubblewrap: BubblewrapBackend,
) -> None:
    asked = spec(requirements="six")
    async with opened(bubblewrap, asked) as sandbox:
        found = await sandbox.run_code("print(open('/proc/self/mountinfo').read())")
    assert "/opt/deps" in found.stdout
    own = [str(settings.IZZY_DATA_DIR), asked.user_id.hex, str(asked.user_id), str(Path.home())]
    assert not [name for name in own if name in found.stdout]


async def test_a_flood_of_socket_buffers_is_ended(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import os, socket, time
        for _ in range(50):
            if os.fork() == 0: break
        kept = []
        try:
            for _ in range(60):
                pair = socket.socketpair()
                kept.append(pair)
                for end in pair:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000_000)
                    end.setblocking(False)
                    try:
                        while True: end.send(bytes(60_000))
                    except BlockingIOError: pass
        except OSError: pass
        time.sleep(20)
        return ''
    """
    outcome = await tried(bubblewrap, body)
    assert code_of(outcome) == ErrorCode.OUT_OF_MEMORY


async def test_socket_and_pipe_buffers_cannot_be_enlarged(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import fcntl, os, socket
        end = socket.socket(socket.AF_UNIX)
        before = end.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, before * 2)
        same = end.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == before
        try:
            fcntl.fcntl(os.pipe()[0], 1031, 1_000_000)
        except PermissionError:
            return str(same)
    """
    assert (await tried(bubblewrap, body)).result == "True"


async def test_a_fork_bomb_is_contained(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import os
        def bomb():
            while True:
                try: os.fork()
                except OSError: pass
        bomb()
    """
    most, others = 0, own_processes()

    def grown() -> bool:
        nonlocal most
        most = max(most, len(own_processes(others)))
        return most > 10

    running = asyncio.create_task(tried(bubblewrap, body))
    await until(grown)
    for _ in range(20):  # it would have grown on by then
        grown()
        await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert most < 80


@pytest.mark.parametrize(
    "setup",
    [
        "",
        "import signal\nfor n in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)",
    ],
)
async def test_an_endless_loop_is_ended_also_with_signals_ignored(
    bubblewrap: BubblewrapBackend, setup: str
) -> None:
    outcome = await tried(bubblewrap, f"{setup}\nwhile True: pass", limits=small(wall_seconds=1.0))
    assert code_of(outcome) == ErrorCode.TIMED_OUT


async def test_processor_time_has_a_limit_of_its_own(bubblewrap: BubblewrapBackend) -> None:
    outcome = await tried(bubblewrap, "while True: pass", limits=small(cpu_seconds=1, wall_seconds=30.0))
    assert code_of(outcome) == ErrorCode.TIMED_OUT


async def test_limits_cannot_be_raised(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import resource
        for name in ('RLIMIT_NPROC', 'RLIMIT_AS', 'RLIMIT_NOFILE', 'RLIMIT_CPU', 'RLIMIT_FSIZE'):
            try:
                resource.setrlimit(getattr(resource, name), (10**12, 10**12))
                return name
            except (ValueError, PermissionError): pass
        return 'none'
    """
    assert (await tried(bubblewrap, body)).result == "none"


async def test_a_gigabyte_of_output_ends_it(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import os
        for _ in range(1000): os.write(1, bytes(1_000_000))
        return ''
    """
    outcome = await tried(bubblewrap, body)
    assert code_of(outcome) == ErrorCode.TOO_MUCH_OUTPUT
    assert len(outcome.stdout) < 1_100_000


# --- what would outlive it ---


async def test_a_daemon_left_behind_ends_with_the_sandbox(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True: time.sleep(1)
            os._exit(0)
        return 'left one'
    """
    assert (await tried(bubblewrap, body)).result == "left one"


@pytest.mark.parametrize("target", ["1", "-1", "os.getppid()"])
async def test_no_signal_to_what_serves_it_has_any_effect(
    bubblewrap: BubblewrapBackend, target: str
) -> None:
    body = f"""
        import os, signal, time
        for number in signal.valid_signals():
            try: os.kill({target}, number)
            except ProcessLookupError: pass
        time.sleep(0.2)
        return 'alive'
    """
    assert (await tried(bubblewrap, body)).result == "alive"


async def test_killing_its_group_ends_itself_alone(bubblewrap: BubblewrapBackend) -> None:
    outcome = await tried(bubblewrap, "import os\nos.kill(0, 9)\nimport time; time.sleep(5)")
    assert code_of(outcome) == ErrorCode.RAISED
    assert outcome.error is not None
    assert "SIGKILL" in outcome.error.message


@pytest.mark.parametrize("target", ["1", "os.getppid()"])
@pytest.mark.parametrize("name", ["mem", "fd", "environ", "maps", "map_files", "cwd", "root", "stack"])
async def test_it_cannot_look_into_what_serves_it(
    bubblewrap: BubblewrapBackend, target: str, name: str
) -> None:
    """There the way to the host lies open: whoever writes in its memory, or to its descriptors, speaks for it."""
    body = f"""
        import os
        place = f'/proc/{{{target}}}/{name}'
        if os.path.islink(place) or {name!r} in ('cwd', 'root'):
            return os.readlink(place)
        if os.path.isdir(place):
            return str(os.listdir(place))
        return str(open(place, 'r+b' if {name!r} == 'mem' else 'rb').read(1))
    """
    assert "PermissionError" in await refused_with(bubblewrap, body)


async def test_neither_do_the_programs_that_it_starts_nor_the_kernel_of_a_build(
    bubblewrap: BubblewrapBackend,
) -> None:
    looking = "print('open' if os.access('/proc/1/fd', os.R_OK) else 'closed')"
    async with opened(bubblewrap, spec(purpose=Purpose.BUILD, limits=BUILD_LIMITS)) as sandbox:
        assert (await sandbox.run_code(f"import os; {looking}")).stdout == "closed\n"
        command = f'python3 -c "import os; {looking}"; ls /proc/1/fd'
        done = await sandbox.run_command(command)
    assert done.stdout == "closed\n"
    assert "Permission denied" in done.stderr


async def test_it_can_look_into_itself_as_any_program(bubblewrap: BubblewrapBackend) -> None:
    body = "import os\nreturn str([len(os.listdir('/proc/self/fd')) > 2, len(open('/proc/self/environ').read()) > 9])"
    assert (await tried(bubblewrap, body)).result == "[True, True]"


async def test_orphans_are_laid_to_rest(bubblewrap: BubblewrapBackend) -> None:
    """A zombie counts as a process: without this, 64 of them would be all that a sandbox can start."""
    body = """
        import os, time
        for _ in range(200):
            if (pid := os.fork()) == 0:
                if os.fork() == 0: os._exit(0)
                os._exit(0)
            os.waitpid(pid, 0)
            time.sleep(0.002)
        return 'started them all'
    """
    assert (await tried(bubblewrap, body)).result == "started them all"


async def test_the_hosts_processes_cannot_be_signalled(bubblewrap: BubblewrapBackend) -> None:
    body = f"import os\nos.kill({os.getpid()}, 0)\nreturn ''"
    assert "ProcessLookupError" in await refused_with(bubblewrap, body)


SERVER = """
import asyncio, os, uuid
os.environ["DJANGO_SETTINGS_MODULE"] = "izzysite.settings"
import django
django.setup()
from apps.capabilities.sandbox.base import SandboxSpec
from apps.capabilities.sandbox.running import open_sandbox
from apps.capabilities.sandbox.base import BUILD_LIMITS, Purpose
async def main():
    async def one(purpose):
        async with open_sandbox(SandboxSpec(user_id=uuid.uuid4(), purpose=purpose)) as sandbox:
            print("ready", flush=True)
            await sandbox.run_command("(setsid sleep 600 &) ; sleep 600")
    await asyncio.gather(one(Purpose.RUN), one(Purpose.BUILD))
asyncio.run(main())
"""


async def test_none_remain_when_the_server_is_killed(bubblewrap: BubblewrapBackend) -> None:
    environment = {
        **os.environ,
        "IZZY_DATA_DIR": str(settings.IZZY_DATA_DIR),
        "IZZY_SANDBOX_DIR": str(settings.IZZY_SANDBOX_DIR),
    }
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, cwd=settings.BASE_DIR, env=environment, stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    for _ in range(2):
        assert await server.stdout.readline() == b"ready\n"
    try:
        await until(lambda: len(processes.descendants(server.pid)) >= 10)
        started = processes.descendants(server.pid)
    finally:
        server.kill()
        await server.wait()
    await until(lambda: not any(_lives(pid) for pid in started))


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


# --- what the kernel must not be asked ---

X86_64 = sys.platform == "linux" and os.uname().machine == "x86_64"


@pytest.mark.skipif(not X86_64, reason="the numbers are those of x86-64")
@pytest.mark.parametrize(
    ("name", "call", "expected"),
    [
        ("ptrace", "101, 0, 0, 0, 0", "EPERM"),
        ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0", "EPERM"),
        ("mount", "165, 0, 0, 0, 0, 0", "EPERM"),
        ("umount2", "166, 0, 0", "EPERM"),
        ("pivot_root", "155, 0, 0", "EPERM"),
        ("chroot", "161, 0", "EPERM"),
        ("unshare a user namespace", "272, 0x10000000", "EPERM"),
        ("unshare nothing", "272, 0", "EPERM"),
        ("clone a user namespace", "56, 0x10000011, 0, 0, 0, 0", "EPERM"),
        ("setns", "308, 0, 0", "EPERM"),
        ("clone3", "435, 0, 0", "ENOSYS"),
        ("io_uring_setup", "425, 1, 0", "ENOSYS"),
        ("open_tree", "428, 0, 0, 0", "ENOSYS"),
        ("fsopen", "430, 0, 0", "ENOSYS"),
        ("pidfd_getfd", "438, 0, 0, 0", "ENOSYS"),
        ("keyctl", "250, 0, 0, 0, 0, 0", "EPERM"),
        ("add_key", "248, 0, 0, 0, 0, 0", "EPERM"),
        ("bpf", "321, 0, 0, 0", "EPERM"),
        ("perf_event_open", "298, 0, 0, 0, 0, 0", "EPERM"),
        ("userfaultfd", "323, 0", "EPERM"),
        ("memfd_create", "319, ctypes.c_char_p(b'x'), 0", "EPERM"),
        ("shmget", "29, 0, 4096, 0o1600", "EPERM"),
        ("msgget", "68, 0, 0o1600", "EPERM"),
        ("semget", "64, 0, 1, 0o1600", "EPERM"),
        ("kexec_load", "246, 0, 0, 0, 0", "EPERM"),
        ("init_module", "175, 0, 0, 0", "EPERM"),
        ("TIOCSTI", "16, 0, 0x5412, 0", "EPERM"),
        ("TIOCSTI with high bits set", "16, 0, 0x100005412, 0", "EPERM"),
        ("TIOCLINUX", "16, 0, 0x541C, 0", "EPERM"),
        ("a netlink socket", "41, 16, 3, 0", "EAFNOSUPPORT"),
        ("a packet socket", "41, 17, 3, 0", "EAFNOSUPPORT"),
        ("a vsock socket", "41, 40, 1, 0", "EAFNOSUPPORT"),
        ("an alg socket", "41, 38, 5, 0", "EAFNOSUPPORT"),
        ("a raw socket", "41, 2, 3, 1", "EAFNOSUPPORT"),
        ("an SCTP socket", "41, 2, 1, 132", "EAFNOSUPPORT"),
        ("a netlink pair", "53, 16, 3, 0, 0", "EAFNOSUPPORT"),
        ("getpid", "39", "OK"),
        ("a TCP socket", "41, 2, 1, 6", "OK"),
        ("a UNIX socket", "41, 1, 1, 0", "OK"),
    ],
)
async def test_what_the_kernel_answers(
    bubblewrap: BubblewrapBackend, name: str, call: str, expected: str
) -> None:
    outcome = await run_main(bubblewrap, f"{SYSCALL}\ndef run(args): return call({call})")
    assert outcome.result == expected, name


@pytest.mark.skipif(not X86_64, reason="the second ABI of x86-64")
async def test_calls_of_a_foreign_abi_kill(bubblewrap: BubblewrapBackend) -> None:
    outcome = await run_main(bubblewrap, f"{SYSCALL}\ndef run(args): return call(0x40000000 + 39)")
    assert outcome.error is not None
    assert "SIGSYS" in outcome.error.message


async def test_threads_subprocesses_and_worker_pools_still_work(bubblewrap: BubblewrapBackend) -> None:
    body = """
        import concurrent.futures as futures, multiprocessing, subprocess
        with futures.ThreadPoolExecutor(4) as pool: threads = sum(pool.map(len, ['a', 'bb']))
        with multiprocessing.get_context('fork').Pool(2) as pool: workers = sum(pool.map(len, ['a', 'bb']))
        value = multiprocessing.Value('i', 4)
        return f"{threads} {workers} {value.value} {subprocess.check_output(['echo', 'hi'], text=True).strip()}"
    """
    outcome = await tried(bubblewrap, body)
    assert outcome.result == "3 3 4 hi", outcome


# --- the network ---


async def test_there_is_no_network_and_no_name_resolution(bubblewrap: BubblewrapBackend) -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    body = f"""
        import socket
        said = []
        for address in (('127.0.0.1', {port}), ('169.254.169.254', 80), ('1.1.1.1', 53), ('::1', {port})):
            try:
                socket.create_connection(address, 1)
                said.append('reached')
            except OSError as error: said.append('no')
        try:
            socket.getaddrinfo('example.org', 80)
            said.append('resolved')
        except OSError: said.append('no')
        return ' '.join(said)
    """
    async with listener:
        assert (await tried(bubblewrap, body)).result == "no no no no no"


async def test_abstract_sockets_of_the_host_are_out_of_reach(bubblewrap: BubblewrapBackend) -> None:
    name = f"izzy-test-{uuid4()}"
    server = await asyncio.start_unix_server(lambda *_: None, "\0" + name)
    body = f"import socket\nsocket.socket(socket.AF_UNIX).connect(chr(0) + {name!r})\nreturn ''"
    async with server:
        assert "ConnectionRefusedError" in await refused_with(bubblewrap, body)


# --- the channel to the host ---


async def test_deep_json_and_malformed_frames_harm_nobody(bubblewrap: BubblewrapBackend) -> None:
    """The tool writes to every descriptor it has; whatever comes of it is an answer or an error, never a crash."""
    for frame in (
        "b'[' * 100_000",
        "b'{\"result\": NaN}'",
        "b'\\xff\\xfe'",
        "b'7'",
        'b\'{"kernel": "x"}\'',
    ):
        body = f"""
            import os
            data = {frame}
            for descriptor in range(3, 64):
                try: os.write(descriptor, len(data).to_bytes(4, 'big') + data)
                except OSError: pass
            return 'mine'
        """
        outcome = await tried(bubblewrap, body)
        assert outcome.result == "mine" or code_of(outcome) == ErrorCode.BAD_RESULT


async def test_the_tools_process_has_no_descriptor_that_leads_to_the_host(
    bubblewrap: BubblewrapBackend,
) -> None:
    body = """
        import os
        return ' '.join(sorted(os.readlink(f'/proc/self/fd/{n}').partition(':')[0]
            for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists(f'/proc/self/fd/{n}')))
    """
    assert "socket" not in ((await tried(bubblewrap, body)).result or "socket")


@pytest.mark.parametrize(
    "trap", ["ln -s /etc/passwd main.py", "mkfifo main.py", "ln -s /proc/self/mem main.py"]
)
async def test_links_and_pipes_in_the_way_of_written_files_are_replaced(
    bubblewrap: BubblewrapBackend, trap: str
) -> None:
    async with opened(bubblewrap) as sandbox:
        assert (await sandbox.run_command(trap)).ok
        async with asyncio.timeout(PATIENCE):
            await sandbox.write_file("main.py", "def run(args): return 'written'")
            outcome = await sandbox.run_capability({"main.py": "def run(args): return 'mine'"}, {})
        assert outcome.result == "mine"


async def test_a_build_that_fills_its_disk_is_told_so(bubblewrap: BubblewrapBackend) -> None:
    wanted = spec(purpose=Purpose.BUILD, limits=BUILD_LIMITS)
    async with opened(bubblewrap, wanted) as sandbox:
        await sandbox.run_command("head -c 300M /dev/zero > /home/user/big")
        outcome = await sandbox.run_capability(
            {"main.py": "def run(args): return ''" + " " * 100_000}, {}
        )
        assert outcome.error is not None
        assert "No space left" in outcome.error.message


async def test_a_stopped_tool_is_killed_at_once(bubblewrap: BubblewrapBackend) -> None:
    """SIGSTOP of itself: only the wall clock still runs."""
    body = f"import os\nos.kill(os.getpid(), {int(signal.SIGSTOP)})\nreturn ''"
    outcome = await tried(bubblewrap, body, limits=small(wall_seconds=1.0))
    assert code_of(outcome) == ErrorCode.TIMED_OUT
