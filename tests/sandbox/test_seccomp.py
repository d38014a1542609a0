"""The filter of system calls, run by a small interpreter of BPF. What the kernel makes of it is tested in `test_bubblewrap.py`."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from agentcore_sandbox.bubblewrap.seccomp import (
    AARCH64,
    ALLOW,
    ARCHITECTURES,
    KILL_PROCESS,
    X86_64,
    Architecture,
    build_filter,
    refusal,
)

EACH = pytest.mark.parametrize("architecture", [pytest.param(each, id=name) for name, each in ARCHITECTURES.items()])
EPERM, ENOSYS = refusal(errno.EPERM), refusal(errno.ENOSYS)


def answer(architecture: Architecture, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the filter for a call, and return its answer."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture.audit if audit is None else audit, 0, *padded)
    program = list(struct.iter_unpack("<HBBI", build_filter(architecture)))
    held, place = 0, 0
    while True:
        code, if_true, if_false, value = program[place]
        place += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("<I", data, value)
            case 0x06:
                return int(value)
            case _:
                true = {0x15: held == value, 0x25: held > value, 0x35: held >= value, 0x45: held & value != 0}[code]
                place += if_true if true else if_false


@EACH
def test_what_docker_refuses_is_refused(architecture: Architecture) -> None:
    for name in (
        "mount",
        "umount2",
        "keyctl",
        "add_key",
        "request_key",
        "bpf",
        "perf_event_open",
        "ptrace",
        "userfaultfd",
        "unshare",
    ):
        assert answer(architecture, architecture.refused[name]) == EPERM, name
    for name in (
        "setns",
        "process_vm_readv",
        "process_vm_writev",
        "open_tree",
        "fsopen",
        "io_uring_setup",
        "kexec_load",
        "init_module",
    ):
        assert answer(architecture, architecture.refused[name]) == EPERM, name


@EACH
def test_each_number_stands_once(architecture: Architecture) -> None:
    numbers = [*architecture.refused.values(), *architecture.unknown.values(), *architecture.checked.values()]
    assert len(numbers) == len(set(numbers))
    assert max(numbers) <= architecture.newest


@EACH
def test_what_programs_live_by_is_allowed(architecture: Architecture) -> None:
    known = {*architecture.refused.values(), *architecture.unknown.values(), *architecture.checked.values()}
    for number in set(range(architecture.newest + 1)) - known:
        assert answer(architecture, number) == ALLOW, number


@EACH
def test_newer_calls_and_clone3_are_unknown_so_that_programs_fall_back(architecture: Architecture) -> None:
    assert answer(architecture, architecture.newest + 1) == ENOSYS
    assert answer(architecture, 0x3FFFFFFF) == ENOSYS
    assert answer(architecture, 435) == ENOSYS
    assert answer(architecture, 437) == ENOSYS


@EACH
def test_another_processors_calls_end_the_program(architecture: Architecture) -> None:
    assert answer(architecture, 0, audit=0x40000003) == KILL_PROCESS
    other = AARCH64 if architecture is X86_64 else X86_64
    assert answer(architecture, 0, audit=other.audit) == KILL_PROCESS


def test_x32_calls_are_unknown() -> None:
    for number in (0, 39, 101, 425):
        assert answer(X86_64, 0x40000000 | number) == ENOSYS
    assert answer(X86_64, 0xFFFFFFFF) == ENOSYS


@EACH
def test_processes_are_made_but_no_namespaces(architecture: Architecture) -> None:
    clone = architecture.checked["clone"]
    assert answer(architecture, clone, 0x01200011) == ALLOW  # fork
    assert answer(architecture, clone, 0x003D0F00) == ALLOW  # a thread
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(architecture, clone, flag | 0x11) == EPERM


@EACH
def test_nothing_is_typed_on_a_terminal(architecture: Architecture) -> None:
    ioctl = architecture.checked["ioctl"]
    assert answer(architecture, ioctl, 0, 0x5413) == ALLOW  # TIOCGWINSZ
    for request in (0x5412, 0x541C):
        assert answer(architecture, ioctl, 0, request) == EPERM
        # The kernel takes the low half of it.
        assert answer(architecture, ioctl, 0, 0xDEADBEEF_00000000 | request) == EPERM


@EACH
def test_sockets_are_of_four_families(architecture: Architecture) -> None:
    for name in ("socket", "socketpair"):
        number = architecture.checked[name]
        allowed = [family for family in range(64) if answer(architecture, number, family) == ALLOW]
        assert allowed == [1, 2, 10, 16]
        assert answer(architecture, number, 40) == refusal(errno.EAFNOSUPPORT)  # AF_VSOCK
        assert answer(architecture, number, 17) == refusal(errno.EAFNOSUPPORT)  # AF_PACKET


@EACH
def test_protections_of_memory_are_not_switched_off(architecture: Architecture) -> None:
    personality = architecture.checked["personality"]
    assert answer(architecture, personality, 0xFFFFFFFF) == ALLOW
    assert answer(architecture, personality, 0) == ALLOW
    assert answer(architecture, personality, 0x0040000) == EPERM  # ADDR_NO_RANDOMIZE
    assert answer(architecture, personality, 0x0400000) == EPERM  # READ_IMPLIES_EXEC


@EACH
def test_no_file_becomes_setuid_or_setgid(architecture: Architecture) -> None:
    modes = {"creat": 1, "chmod": 1, "fchmod": 1, "fchmodat": 2, "mknod": 1, "mknodat": 2}
    for name in modes.keys() & architecture.checked.keys():
        before = [0] * modes[name]
        for bits, expected in ((0o755, ALLOW), (0o1777, ALLOW), (0o4755, EPERM), (0o2755, EPERM)):
            assert answer(architecture, architecture.checked[name], *before, bits) == expected, name
    opens = {"open": 1, "openat": 2}
    for name in opens.keys() & architecture.checked.keys():
        number, before = architecture.checked[name], [0] * opens[name]
        assert answer(architecture, number, *before, 0o101, 0o644) == ALLOW
        assert answer(architecture, number, *before, 0o101, 0o4755) == EPERM
        assert answer(architecture, number, *before, 0o20200002, 0o4755) == EPERM  # O_TMPFILE
        assert (
            answer(architecture, number, *before, 0, 0o6777) == ALLOW
        )  # no mode without O_CREAT, but what was left in a register


@EACH
def test_each_way_through_the_filter_ends(architecture: Architecture) -> None:
    program = list(struct.iter_unpack("<HBBI", build_filter(architecture)))
    assert len(program) <= 4096
    for place, (code, if_true, if_false, _) in enumerate(program):
        if code not in {0x06, 0x20}:
            assert place + 1 + max(if_true, if_false) < len(program)
    assert program[-1] == (0x06, 0, 0, ALLOW)


@pytest.mark.parametrize(
    ("header", "architecture"),
    [("x86_64-linux-gnu/asm/unistd_64.h", X86_64), ("asm-generic/unistd.h", AARCH64)],
    ids=["x86_64", "aarch64"],
)
def test_the_numbers_are_those_of_the_kernels_headers(header: str, architecture: Architecture) -> None:
    path = Path("/usr/include") / header
    if not path.exists():
        pytest.skip("the kernel's headers are not here: apt install linux-libc-dev")
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", path.read_text()))
    for name, number in {**architecture.refused, **architecture.unknown, **architecture.checked}.items():
        # Those that are newer than the headers here are compared elsewhere.
        assert name not in found or int(found[name]) == number, name
