"""The filter of system calls, as the classic BPF program that `bwrap --seccomp FD` reads.

It denies what a tool has no use for and what has opened kernels before, and what would hold memory that the watchdog does
not see (memfd, System V and anonymous shared memory, huge pages, grown socket and pipe buffers). Errors are those of an
old or restricted kernel, so that libraries fall back instead of breaking.
"""

import errno
import struct
from collections.abc import Iterable

from .syscalls import Machine

LOAD, JUMP_EQUAL, JUMP_SET, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
JUMP_AT_LEAST = 0x35
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

NUMBER, ARCHITECTURE = 0, 4
ARGUMENTS = 16
"""Offsets in `struct seccomp_data`; arguments are eight bytes each, on both machines low half first."""

DENIED = [
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "memfd_create",
    "shmget",
    "shmat",
    "shmctl",
    "shmdt",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "semget",
    "semop",
    "semctl",
    "semtimedop",
    "open_by_handle_at",
    "name_to_handle_at",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "syslog",
    "quotactl",
    "lookup_dcookie",
    "nfsservctl",
    "iopl",
    "ioperm",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "modify_ldt",
    "personality",
    "move_pages",
    "migrate_pages",
    "mbind",
    "set_mempolicy",
    "vhangup",
    "uselib",
    "_sysctl",
    "fanotify_init",
    "io_setup",
    "inotify_init",
    "inotify_init1",
    "vmsplice",
    "remap_file_pages",
]

NEW_CALLS_FROM = 424
NEW_CALLS_ALLOWED = (436, 437, 439, 441, 449, 452, 453, 462)
"""close_range, openat2, faccessat2, epoll_pwait2, futex_waitv, fchmodat2, map_shadow_stack, mseal: what a modern libc
calls. Numbers from 424 on are the same on all machines."""

NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

UNIX, INET, INET6 = 1, 2, 10
STREAM, DATAGRAM = 1, 2
SOCKET_TYPE = 0xF
PROTOCOLS = (0, 6, 17)
"""The default of the type, TCP, UDP."""

SOL_SOCKET = 1
BUFFER_OPTIONS = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF and their FORCE forms: answered with success and ignored."""

TERMINAL_REQUESTS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI, TIOCLINUX, TIOCSETD."""
F_SETPIPE_SZ = 1031

MAP_KIND, MAP_PRIVATE, MAP_ANONYMOUS, MAP_HUGETLB = 0x0F, 0x02, 0x20, 0x40000

Instruction = tuple[int, int, int, int]


def build_filter(machine: Machine) -> bytes:
    """The program for one machine: eight bytes an instruction, about 160 of them."""
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, machine.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    if machine.foreign_bit:
        program += [(JUMP_SET, 0, 1, machine.foreign_bit), (RETURN, 0, 0, KILL)]
    program += _new_calls()
    denied = ERRNO | errno.EPERM
    for name in DENIED:
        if name in machine.numbers:
            program += [(JUMP_EQUAL, 0, 1, machine.numbers[name]), (RETURN, 0, 0, denied)]
    for name, body in _conditions().items():
        program += [(JUMP_EQUAL, 0, len(body), machine.numbers[name]), *body]
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _new_calls() -> list[Instruction]:
    allowed: list[Instruction] = []
    for number in NEW_CALLS_ALLOWED:
        allowed += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    body = [*allowed, (RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    return [(JUMP_AT_LEAST, 0, len(body), NEW_CALLS_FROM), *body]


def _conditions() -> dict[str, list[Instruction]]:
    """Calls that depend on their arguments; each body ends with a verdict."""
    denied = ERRNO | errno.EPERM
    return {
        "clone": [
            (LOAD, 0, 0, _argument(0)),
            (JUMP_SET, 0, 1, NAMESPACE_FLAGS),
            (RETURN, 0, 0, denied),
            (RETURN, 0, 0, ALLOW),
        ],
        "socket": _sockets(),
        "socketpair": _sockets(),
        "setsockopt": [
            (LOAD, 0, 0, _argument(1)),
            (JUMP_EQUAL, 1, 0, SOL_SOCKET),
            (RETURN, 0, 0, ALLOW),
            (LOAD, 0, 0, _argument(2)),
            *_verdict_on(BUFFER_OPTIONS, ERRNO),
            (RETURN, 0, 0, ALLOW),
        ],
        "ioctl": [
            (LOAD, 0, 0, _argument(1)),
            *_verdict_on(TERMINAL_REQUESTS, denied),
            (RETURN, 0, 0, ALLOW),
        ],
        "fcntl": [
            (LOAD, 0, 0, _argument(1)),
            *_verdict_on((F_SETPIPE_SZ,), denied),
            (RETURN, 0, 0, ALLOW),
        ],
        # Of its own process alone, which glibc writes as 0: what serves the tool inside has the same user.
        "prlimit64": [
            (LOAD, 0, 0, _argument(0)),
            (JUMP_EQUAL, 0, 1, 0),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, denied),
        ],
        "mmap": _mappings(),
    }


def _sockets() -> list[Instruction]:
    """UNIX sockets of any type; of IPv4 and IPv6 streams and datagrams of TCP and UDP alone."""
    refused: Instruction = (RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT)
    return [
        (LOAD, 0, 0, _argument(0)),
        (JUMP_EQUAL, 0, 1, UNIX),
        (RETURN, 0, 0, ALLOW),
        (JUMP_EQUAL, 2, 0, INET),
        (JUMP_EQUAL, 1, 0, INET6),
        refused,
        (LOAD, 0, 0, _argument(1)),
        (AND, 0, 0, SOCKET_TYPE),
        (JUMP_EQUAL, 2, 0, STREAM),
        (JUMP_EQUAL, 1, 0, DATAGRAM),
        refused,
        (LOAD, 0, 0, _argument(2)),
        *_verdict_on(PROTOCOLS, ALLOW),
        refused,
    ]


def _mappings() -> list[Instruction]:
    """No huge pages, and no shared anonymous memory: neither is counted in a process's resident memory."""
    refused: Instruction = (RETURN, 0, 0, ERRNO | errno.EPERM)
    return [
        (LOAD, 0, 0, _argument(3)),
        (JUMP_SET, 0, 1, MAP_HUGETLB),
        refused,
        (JUMP_SET, 1, 0, MAP_ANONYMOUS),
        (RETURN, 0, 0, ALLOW),
        (AND, 0, 0, MAP_KIND),
        (JUMP_EQUAL, 0, 1, MAP_PRIVATE),
        (RETURN, 0, 0, ALLOW),
        refused,
    ]


def _verdict_on(values: Iterable[int], verdict: int) -> list[Instruction]:
    program: list[Instruction] = []
    for value in values:
        program += [(JUMP_EQUAL, 0, 1, value), (RETURN, 0, 0, verdict)]
    return program


def _argument(index: int) -> int:
    return ARGUMENTS + 8 * index
