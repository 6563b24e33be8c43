"""The system-call filter of a sandboxed terminal, as bytes for the kernel.

It is defence in depth: the namespaces and mounts are the sandbox. It refuses what
types into the terminal from inside (TIOCSTI, TIOCLINUX), what reaches past a mount
namespace (keyrings, file handles) and kernel doors no agent needs (bpf, modules, kexec,
io_uring). `ptrace`, `unshare` and `mount` stay: debuggers, browsers and an agent's own
sandbox use them, and a nested namespace cannot undo a mask.

The program is classic BPF (seccomp(2)); system-call numbers are the kernel's tables
`arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
"""

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TIOCSTI: Final = 0x5412
"""Puts a byte into the terminal's input, as if it had been typed."""
TIOCLINUX: Final = 0x541C
"""On a console: pastes a selection, which is typing too."""

# <linux/seccomp.h>, struct seccomp_data: nr, arch, instruction_pointer, args[6].
_OFFSET_NUMBER: Final = 0
_OFFSET_ARCH: Final = 4
# The low 32 bits of args[1], little endian on both machines. The kernel looks at no
# more of an ioctl's command, so a filter that compared all 64 could be walked around.
_OFFSET_IOCTL_COMMAND: Final = 24

_RET_KILL_PROCESS: Final = 0x80000000
_RET_ERRNO: Final = 0x00050000
_RET_ALLOW: Final = 0x7FFF0000

# <linux/bpf_common.h>
_LOAD_WORD: Final = 0x20
_JUMP_IF_EQUAL: Final = 0x15
_JUMP_IF_GREATER_OR_EQUAL: Final = 0x35
_RETURN: Final = 0x06

_X32_BIT: Final = 0x40000000
"""Numbers from here on are x86's x32 calls: the same doors under other numbers."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine's numbers for what the filter names."""

    audit_arch: int
    """AUDIT_ARCH_* of <linux/audit.h>."""
    has_x32: bool
    ioctl: int
    forbidden: Mapping[str, int]
    """Refused with EPERM."""
    absent: Mapping[str, int]
    """Refused with ENOSYS, so that programs fall back to older calls."""


_IO_URING: Final = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
}

MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(
        audit_arch=0xC000003E,
        has_x32=True,
        ioctl=16,
        forbidden={
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "bpf": 321,
            "perf_event_open": 298,
            "userfaultfd": 323,
            "open_by_handle_at": 304,
            "kexec_load": 246,
            "kexec_file_load": 320,
            "create_module": 174,
            "init_module": 175,
            "delete_module": 176,
            "query_module": 178,
            "finit_module": 313,
            "acct": 163,
        },
        absent=_IO_URING,
    ),
    "aarch64": Machine(
        audit_arch=0xC00000B7,
        has_x32=False,
        ioctl=29,
        forbidden={
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "bpf": 280,
            "perf_event_open": 241,
            "userfaultfd": 282,
            "open_by_handle_at": 265,
            "kexec_load": 104,
            "kexec_file_load": 294,
            "init_module": 105,
            "delete_module": 106,
            "finit_module": 273,
            "acct": 89,
        },
        absent=_IO_URING,
    ),
}
"""By `platform.machine()`."""


def build_filter(machine: Machine) -> bytes:
    """Return the filter for *machine* as `bwrap --seccomp` reads it."""
    program = [
        _statement(_LOAD_WORD, _OFFSET_ARCH),
        _jump(_JUMP_IF_EQUAL, machine.audit_arch, then=1, otherwise=0),
        # A call of another machine (32 bit) means numbers this table does not know.
        _statement(_RETURN, _RET_KILL_PROCESS),
        _statement(_LOAD_WORD, _OFFSET_NUMBER),
    ]
    if machine.has_x32:
        program += _refuse(_JUMP_IF_GREATER_OR_EQUAL, _X32_BIT, errno.ENOSYS)
    for number in machine.forbidden.values():
        program += _refuse(_JUMP_IF_EQUAL, number, errno.EPERM)
    for number in machine.absent.values():
        program += _refuse(_JUMP_IF_EQUAL, number, errno.ENOSYS)
    program += [
        _jump(_JUMP_IF_EQUAL, machine.ioctl, then=1, otherwise=0),
        _statement(_RETURN, _RET_ALLOW),
        _statement(_LOAD_WORD, _OFFSET_IOCTL_COMMAND),
        *_refuse(_JUMP_IF_EQUAL, TIOCSTI, errno.EPERM),
        *_refuse(_JUMP_IF_EQUAL, TIOCLINUX, errno.EPERM),
        _statement(_RETURN, _RET_ALLOW),
    ]
    return b"".join(program)


def _refuse(test: int, value: int, error: int) -> list[bytes]:
    """Return the two instructions that answer *error* when the test holds."""
    return [
        _jump(test, value, then=0, otherwise=1),
        _statement(_RETURN, _RET_ERRNO | error),
    ]


def _statement(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, *, then: int, otherwise: int) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
