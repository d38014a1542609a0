"""The filter of system calls in a bubblewrap box, as BPF bytes made by `struct`.

Refused is what Docker's default profile refuses to a container without capabilities, and besides: `ptrace`, `chroot`, `openat2` and
`fchmodat2` (whose modes a filter cannot see, or not on each kernel), the giving of setuid and setgid bits, and each call that is newer
than the tables here. io_uring, user namespaces (`unshare`, `clone` with their flags), keyrings, bpf, perf events, mounts and modules are
among Docker's. `clone3` and what is unknown is ENOSYS, by which programs fall back to older calls; the rest is EPERM.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

ALLOW: Final = 0x7FFF0000
KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000

# Of `struct seccomp_data`, on a machine with the low half of a number first, as both are.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_ARGUMENTS: Final = 16

_LOAD: Final = 0x20
_EQUALS: Final = 0x15
_GREATER: Final = 0x25
_GREATER_OR_EQUAL: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06

X32_BIT: Final = 0x40000000
SETUID_BITS: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000
"""O_CREAT, and what tells O_TMPFILE: only then open() has a mode."""
NAMESPACE_FLAGS: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
TERMINAL_INJECTION: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, by which a program types on the terminal that it has."""
FAMILIES: Final = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. Not AF_VSOCK, AF_PACKET, AF_ALG and some forty others."""
PERSONALITIES: Final = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Linux, UNAME26 and asking, as Docker has it: those with other bits switch protections of memory off."""


class Architecture(NamedTuple):
    """A processor: its number for the kernel, and the numbers of its system calls."""

    audit: int
    newest: int
    """The highest number that was looked at; each call beyond is refused."""
    refused: dict[str, int]
    """EPERM."""
    unknown: dict[str, int]
    """ENOSYS."""
    checked: dict[str, int]
    """Those that are decided by their arguments."""
    has_x32: bool = False


# Since Linux 5.1 new calls have the same number everywhere.
_NEW_REFUSED: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "set_mempolicy_home_node": 450, "open_tree_attr": 467,
}  # fmt: skip
_NEW_UNKNOWN: Final = {"clone3": 435, "openat2": 437, "fchmodat2": 452}
_NEWEST: Final = 469

X86_64: Final = Architecture(
    audit=0xC000003E,
    newest=_NEWEST,
    refused={
        "ptrace": 101, "syslog": 103, "uselib": 134, "ustat": 136, "sysfs": 139, "vhangup": 153, "pivot_root": 155, "_sysctl": 156,
        "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "create_module": 174, "init_module": 175,
        "delete_module": 176, "get_kernel_syms": 177, "query_module": 178, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212,
        "clock_settime": 227, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298,
        "fanotify_init": 300, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        **_NEW_REFUSED,
    },
    unknown=_NEW_UNKNOWN,
    checked={
        "open": 2, "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133,
        "personality": 135, "openat": 257, "mknodat": 259, "fchmodat": 268,
    },
    has_x32=True,
)  # fmt: skip

AARCH64: Final = Architecture(
    audit=0xC00000B7,
    newest=_NEWEST,
    refused={
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51, "vhangup": 58,
        "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
        "syslog": 116, "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "add_key": 217,
        "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "mbind": 235, "get_mempolicy": 236, "set_mempolicy": 237,
        "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265,
        "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
        **_NEW_REFUSED,
    },
    unknown=_NEW_UNKNOWN,
    checked={
        "ioctl": 29, "mknodat": 33, "fchmod": 52, "fchmodat": 53, "openat": 56, "personality": 92, "socket": 198, "socketpair": 199,
        "clone": 220,
    },
)  # fmt: skip

ARCHITECTURES: Final = {"x86_64": X86_64, "aarch64": AARCH64}
"""By the name of the machine, as `os.uname` has it."""

_MODE_ARGUMENTS: Final = {"creat": 1, "chmod": 1, "fchmod": 1, "fchmodat": 2, "mknod": 1, "mknodat": 2}
_OPEN_ARGUMENTS: Final = {"open": (1, 2), "openat": (2, 3)}

_Code = list[tuple[int, int, int, int]]


def refusal(number: int) -> int:
    """Return the answer of a filter that makes a call fail with this error."""
    return _ERRNO | number


def build_filter(architecture: Architecture) -> bytes:
    """Return the program, in the form that bubblewrap reads with `--seccomp`."""
    code: _Code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUALS, 1, 0, architecture.audit),
        (_RETURN, 0, 0, KILL_PROCESS),  # another processor's numbers, as 32-bit programs have them
        (_LOAD, 0, 0, _NUMBER),
    ]
    if architecture.has_x32:
        code += _answer_if(_GREATER_OR_EQUAL, X32_BIT, refusal(errno.ENOSYS))
    code += _answer_if(_GREATER, architecture.newest, refusal(errno.ENOSYS))
    for number in architecture.unknown.values():
        code += _answer_if(_EQUALS, number, refusal(errno.ENOSYS))
    for number in architecture.refused.values():
        code += _answer_if(_EQUALS, number, refusal(errno.EPERM))
    for name, number in architecture.checked.items():
        check = [*_check_arguments(name), (_RETURN, 0, 0, ALLOW)]
        code += [(_EQUALS, 0, len(check), number), *check]
    code.append((_RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def _answer_if(test: int, value: int, answer: int) -> _Code:
    return [(test, 0, 1, value), (_RETURN, 0, 0, answer)]


def _check_arguments(name: str) -> _Code:
    # The kernel looks at the low half of each of these only, and so does this.
    match name:
        case "clone":
            return [_load(0), *_answer_if(_ANY_BIT, NAMESPACE_FLAGS, refusal(errno.EPERM))]
        case "ioctl":
            refused = [_answer_if(_EQUALS, request, refusal(errno.EPERM)) for request in TERMINAL_INJECTION]
            return [_load(1), *(each for pair in refused for each in pair)]
        case "personality":
            return _only(PERSONALITIES, errno.EPERM)
        case "socket" | "socketpair":
            return _only(FAMILIES, errno.EAFNOSUPPORT)
        case "open" | "openat":
            flags, mode = _OPEN_ARGUMENTS[name]
            by_mode = [_load(mode), *_answer_if(_ANY_BIT, SETUID_BITS, refusal(errno.EPERM))]
            return [_load(flags), (_ANY_BIT, 0, len(by_mode), _CREATES), *by_mode]
        case _:
            return [_load(_MODE_ARGUMENTS[name]), *_answer_if(_ANY_BIT, SETUID_BITS, refusal(errno.EPERM))]


def _load(argument: int) -> tuple[int, int, int, int]:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)


def _only(values: Sequence[int], error: int) -> _Code:
    allowed = [_answer_if(_EQUALS, value, ALLOW) for value in values]
    return [_load(0), *(each for pair in allowed for each in pair), (_RETURN, 0, 0, refusal(error))]
