"""The system-call filter, run by a small interpreter of its instructions."""

import errno
import struct

import pytest

from terminal_host.host.seccomp import (
    MACHINES,
    TIOCLINUX,
    TIOCSTI,
    Machine,
    build_filter,
)

ALLOW = "allow"
KILL = "kill"
TCGETS = 0x5401


def judge(program: bytes, *, arch: int, number: int, argument: int = 0) -> str | int:
    """Return what *program* answers to a call: allow, kill, or an errno."""
    data = struct.pack("<iIQ6Q", number, arch, 0, 0, argument, 0, 0, 0, 0)
    instructions = list(struct.iter_unpack("=HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, then, otherwise, value = instructions[at]
        at += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
            at += then if accumulator == value else otherwise
        elif code == 0x35:  # BPF_JMP | BPF_JGE | BPF_K
            at += then if accumulator >= value else otherwise
        else:
            assert code == 0x06  # BPF_RET | BPF_K
            return verdict(value)


def verdict(value: int) -> str | int:
    if value == 0x7FFF0000:
        return ALLOW
    if value == 0x80000000:
        return KILL
    assert value & 0xFFFF0000 == 0x00050000
    return value & 0xFFFF


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


def test_forbidden_calls_answer_eperm_and_absent_ones_enosys(machine: Machine) -> None:
    program = build_filter(machine)
    arch = machine.audit_arch
    for number in machine.forbidden.values():
        assert judge(program, arch=arch, number=number) == errno.EPERM
    for number in machine.absent.values():
        assert judge(program, arch=arch, number=number) == errno.ENOSYS


def test_every_other_call_is_allowed(machine: Machine) -> None:
    program = build_filter(machine)
    refused = {*machine.forbidden.values(), *machine.absent.values()}
    for number in set(range(500)) - refused:
        assert judge(program, arch=machine.audit_arch, number=number) == ALLOW


@pytest.mark.parametrize("command", [TIOCSTI, TIOCLINUX])
@pytest.mark.parametrize("high", [0, 1 << 32, 0xFFFFFFFF << 32])
def test_typing_into_the_terminal_is_refused_whatever_the_high_bits(
    machine: Machine, command: int, high: int
) -> None:
    """The kernel ignores them, so a filter that compares all 64 bits is no filter."""
    answer = judge(
        build_filter(machine),
        arch=machine.audit_arch,
        number=machine.ioctl,
        argument=command | high,
    )
    assert answer == errno.EPERM


def test_other_ioctls_are_allowed(machine: Machine) -> None:
    for argument in (TCGETS, TIOCSTI << 32):
        answer = judge(
            build_filter(machine),
            arch=machine.audit_arch,
            number=machine.ioctl,
            argument=argument,
        )
        assert answer == ALLOW


def test_another_architecture_s_calls_end_the_process(machine: Machine) -> None:
    for arch in (0x40000003, 0x40000028, 0):  # i386, ARM, nothing
        assert judge(build_filter(machine), arch=arch, number=0) == KILL


def test_x32_calls_do_not_exist() -> None:
    machine = MACHINES["x86_64"]
    for number in (0, machine.ioctl, machine.forbidden["keyctl"]):
        answer = judge(
            build_filter(machine), arch=machine.audit_arch, number=number | 1 << 30
        )
        assert answer == errno.ENOSYS
