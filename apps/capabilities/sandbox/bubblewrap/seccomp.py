"""The filter of system calls, as the classic BPF program that `bwrap --seccomp FD` reads.

It denies what a tool has no use for and what has opened kernels before, and what would hold memory that the watchdog does
not see (memfd, System V and anonymous shared memory, huge pages, grown socket and pipe buffers). Errors are those of an
old or restricted kernel, so that libraries fall back instead of breaking.
"""

import errno
import struct
from collections.abc import Iterable
from dataclasses import dataclass

LOAD, JUMP_EQUAL, JUMP_SET, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
JUMP_AT_LEAST = 0x35
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

NUMBER, ARCHITECTURE = 0, 4
ARGUMENTS = 16
"""Offsets in `struct seccomp_data`; arguments are eight bytes each, on both machines low half first."""

SYSTEM_CALLS = """
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
kcmp 312 272
mount 165 40
umount2 166 39
pivot_root 155 41
chroot 161 51
unshare 272 97
setns 308 268
keyctl 250 219
add_key 248 217
request_key 249 218
bpf 321 280
perf_event_open 298 241
userfaultfd 323 282
kexec_load 246 104
kexec_file_load 320 294
init_module 175 105
finit_module 313 273
delete_module 176 106
memfd_create 319 279
shmget 29 194
shmat 30 196
shmctl 31 195
shmdt 67 197
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
semget 64 190
semop 65 193
semctl 66 191
semtimedop 220 192
open_by_handle_at 304 265
name_to_handle_at 303 264
reboot 169 142
swapon 167 224
swapoff 168 225
acct 163 89
syslog 103 116
quotactl 179 60
lookup_dcookie 212 18
nfsservctl 180 42
iopl 172 -
ioperm 173 -
settimeofday 164 170
clock_settime 227 112
clock_adjtime 305 266
adjtimex 159 171
sethostname 170 161
setdomainname 171 162
modify_ldt 154 -
personality 135 92
move_pages 279 239
migrate_pages 256 238
mbind 237 235
set_mempolicy 238 237
vhangup 153 58
uselib 134 -
_sysctl 156 -
fanotify_init 300 262
io_setup 206 0
inotify_init 253 -
inotify_init1 294 26
vmsplice 278 75
remap_file_pages 216 234
clone 56 220
socket 41 198
socketpair 53 199
setsockopt 54 208
ioctl 16 29
fcntl 72 25
prlimit64 302 261
mmap 9 222
"""
"""System calls that the filter names, with their numbers on x86-64 and on aarch64 (from the kernel's asm/unistd_64.h and
asm-generic/unistd.h), - where a machine has none. All of it is denied but where `_conditions` says more."""

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


@dataclass(frozen=True, slots=True)
class Machine:
    audit: int  # as the kernel names it to a filter (AUDIT_ARCH_…)
    foreign_bit: int  # marks calls of its second ABI (x32), 0: it has none
    numbers: dict[str, int]


def _numbers(column: int) -> dict[str, int]:
    rows = [line.split() for line in SYSTEM_CALLS.strip().splitlines()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


X86_64 = Machine(0xC000003E, 0x40000000, _numbers(1))
AARCH64 = Machine(0xC00000B7, 0, _numbers(2))
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}
"""By `platform.machine()`."""


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
    new = [*_verdict_on(NEW_CALLS_ALLOWED, ALLOW), (RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    program += [(JUMP_AT_LEAST, 0, len(new), NEW_CALLS_FROM), *new]
    conditions = _conditions()
    denied = [number for name, number in machine.numbers.items() if name not in conditions]
    program += _verdict_on(denied, ERRNO | errno.EPERM)
    for name, body in conditions.items():
        program += [(JUMP_EQUAL, 0, len(body), machine.numbers[name]), *body]
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


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
