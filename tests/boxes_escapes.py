"""Named attempts to get out of a box, shared by all kinds of boxes. Each one prints ESCAPED inside if it worked.

`{outside}` is a folder of the machine with a file `secret`, `{project}` the project's folder as the machine has it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from agentcore_sandbox.bubblewrap.seccomp import AARCH64, ARCHITECTURES

SHOWS: Final = "ESCAPED"


class Attempt(NamedTuple):
    """One way out, or what would help to find one."""

    name: str
    script: str
    """For sh, in the project's folder."""
    in_docker: bool = True
    """False if Docker's default profile allows it, as no way out."""


def _shell(name: str, line: str) -> Attempt:
    return Attempt(name, f"({line}) 2>/dev/null && echo {SHOWS}; true")


_PYTHON: Final = """HELPER=$PPID python3 - <<'END'
import ctypes, fcntl, os, socket, struct, sys
helper = int(os.environ["HELPER"])
call = ctypes.CDLL(None, use_errno=True).syscall
call.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(4096)
try:
    worked = {}
except OSError:
    worked = False
print("ESCAPED" if worked else "")
END"""


def _python(name: str, expression: str, *, in_docker: bool = True) -> Attempt:
    return Attempt(name, _PYTHON.replace("{}", expression, 1), in_docker)


_NUMBERS: Final = {
    name: number
    for each in [ARCHITECTURES.get(os.uname().machine, AARCH64)]
    for name, number in (*each.refused.items(), *each.checked.items(), *each.unknown.items())
}


def _call(name: str, arguments: str, *, as_name: str | None = None, in_docker: bool = True) -> Attempt:
    return _python(as_name or name, f"call({_NUMBERS[name]}, {arguments}) >= 0", in_docker=in_docker)


FILES: Final = (
    _shell("read a file outside", "cat {outside}/secret"),
    _shell("write a file outside", "echo x >{outside}/written"),
    _shell("read through a link in the project", "ln -sfn {outside} out; cat out/secret"),
    _shell("write through a link in the project", "ln -sfn {outside} out; echo x >out/written"),
    _shell("link a file outside into the project", "ln {outside}/secret hard"),
    _shell("read through the root of the first process", "cat /proc/1/root{outside}/secret"),
    _shell("read through the folder of the first process", "cat /proc/1/cwd/{outside}/secret"),
    _shell("go up from the project", "cd {project}/..; cat ../../../../../../{outside}/secret"),
    _shell("read the passwords", "cat /etc/shadow"),
    _shell("read the keys of the machine", "cat /etc/ssl/private/* /etc/ssh/*key"),
    _shell("read the variables of this program", "tr '\\0' '\\n' </proc/1/environ | grep -q OF_THIS_PROGRAM"),
    _shell("find sockets of daemons", "ls /run/docker.sock /var/run/docker.sock /run/dbus/* /run/containerd/*"),
    _shell("change the system's programs", "echo x >>/usr/bin/env || touch /usr/bin/new"),
    _shell("change the box's root", "touch /new || mkdir /etc/new"),
    _shell(
        "use an open file of the first process",
        "for each in /proc/1/fd/*; do readlink $each; done | grep -E '^/' | grep -v ^/dev/null",
    ),
)

KERNEL_FILES: Final = (
    _shell("core_pattern", "echo '|/bin/sh' >/proc/sys/kernel/core_pattern"),
    _shell("modprobe path", "echo /tmp/x >/proc/sys/kernel/modprobe"),
    _shell("overcommit", "echo 1 >/proc/sys/vm/overcommit_memory"),
    _shell("sysctl of the box's own namespace", "echo 1 >/proc/sys/kernel/shm_rmid_forced"),
    _shell("sysrq", "echo h >/proc/sysrq-trigger"),
    _shell("memory of the kernel", "head -c 1 /proc/kcore | grep -q ."),
    _shell("messages of the kernel", "dmesg | grep -q . || timeout 1 head -c 1 /proc/kmsg | grep -q ."),
    _shell("keys of the kernel", "grep -q . /proc/keys"),
    _shell("timers of the kernel", "grep -q . /proc/timer_list"),
    _shell(
        "release_agent",
        "find / -name release_agent -not -path '/proc/*' | grep -q . && echo /tmp/x >$(find / -name release_agent | head -1)",
    ),
    _shell("mount a control group", "mkdir -p /tmp/cg; mount -t cgroup -o memory x /tmp/cg"),
    _shell("write below /sys", "echo x >/sys/kernel/uevent_helper"),
    _shell("raise its own oom score", "echo -1000 >/proc/self/oom_score_adj"),
    _shell("a disk of the machine", "ls /dev/sd* /dev/vd* /dev/nvme* /dev/dm-* /dev/mem /dev/kmsg /dev/kvm /dev/fuse"),
    _shell("make a device", "mknod {project}/disk b 254 0 || mknod /tmp/null c 1 3"),
    _shell("write to the console", "echo x >/dev/console"),
)

NAMESPACES: Final = (
    _shell("a user namespace", "unshare --user true"),
    _shell("a user namespace as root", "unshare --user --map-root-user --mount true"),
    _shell("a mount namespace", "unshare --mount true"),
    _shell("a network namespace", "unshare --net true"),
    _shell("mount a folder in memory", "mount -t tmpfs x /tmp"),
    _shell("mount a folder again", "mount --bind / /tmp"),
    _shell("make the root writable", "mount -o remount,rw /"),
    _shell("unmount what hides", "umount /proc/sys || umount -l /tmp"),
    _shell("enter the namespaces of the first process", "nsenter -t 1 -a true"),
    _shell("another root", "chroot / true"),
    _call("clone", "0x10000011, 0, 0, 0, 0", as_name="clone with a user namespace"),
    _call("clone3", "buffer, 88"),
    _call("setns", "os.open('/proc/1/ns/mnt', 0), 0"),
    _call("pivot_root", "b'/tmp', b'/tmp'"),
    _call("fsopen", "b'tmpfs', 0"),
    _call("open_tree", "-100, b'/', 1"),
    _call("move_mount", "-100, b'/', -100, b'/tmp', 0"),
)

CALLS: Final = (
    _call("ptrace", "0, 0, 0, 0", as_name="be traced", in_docker=False),
    _call("ptrace", "16, 1, 0, 0", as_name="trace the first process", in_docker=False),
    _call("process_vm_readv", "1, buffer, 0, buffer, 0, 0", in_docker=False),
    _call("pidfd_getfd", "0, 0, 0"),
    _call("keyctl", "0, -3, 1"),
    _call("add_key", "b'user', b'name', b'data', 4, -3"),
    _call("request_key", "b'user', b'name', 0, -3"),
    _call("bpf", "0, buffer, 72"),
    _call("io_uring_setup", "8, buffer", in_docker=False),
    _call("perf_event_open", "buffer, 0, -1, -1, 0"),
    _call("userfaultfd", "1"),
    _call("open_by_handle_at", "3, buffer, 0"),
    _call("kexec_load", "0, 0, 0, 0"),
    _call("init_module", "buffer, 0, b''"),
    _call("sethostname", "b'x', 1"),
    _call("settimeofday", "buffer, 0"),
    _call("reboot", "0xfee1dead, 672274793, 0x89ABCDEF, 0"),
    _call("swapon", "b'/tmp/x', 0"),
    _call("personality", "0x0400000", as_name="personality READ_IMPLIES_EXEC"),
    _python("x32 call", "os.uname().machine == 'x86_64' and call(0x40000000 | 39) >= 0"),
    _python("AF_VSOCK", "socket.socket(40, socket.SOCK_STREAM)", in_docker=False),
    _python("AF_PACKET", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    _python("AF_ALG", "socket.socket(38, socket.SOCK_SEQPACKET)", in_docker=False),
    _python("raw sockets", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    _python("type on a terminal", "fcntl.ioctl(os.openpty()[1], 0x5412, b'x') == b'x'", in_docker=False),
    _python("another user", "os.setuid(0) is None"),
    _python("another group", "os.setgroups([0]) is None"),
)

RIGHTS: Final = (
    Attempt(
        "a setuid program",
        f"cp /bin/true su; chmod 4755 su 2>/dev/null; test -u su && echo {SHOWS}; true",
        in_docker=False,
    ),
    Attempt(
        "a setgid program",
        f"cp /bin/true sg; chmod 2755 sg 2>/dev/null; test -g sg && echo {SHOWS}; true",
        in_docker=False,
    ),
    _python(
        "a setuid file that is opened so",
        "os.fstat(os.open('o', os.O_CREAT | os.O_WRONLY, 0o4755)).st_mode & 0o4000",
        in_docker=False,
    ),
    _shell("a setuid program of the system", "su -c true || sudo -n true"),
    _shell("capabilities", "grep -E 'Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000"),
    _shell("new privileges", "grep NoNewPrivs /proc/self/status | grep -v 1"),
    _shell("no filter", "grep -E 'Seccomp:' /proc/self/status | grep -v 2"),
    _shell("a process outside", "ps -eo args | grep -q '[s]leep 1000'"),
    _shell("end a process outside", "kill -9 {pid}"),
    _shell("more open files", "ulimit -n 1000000"),
    _shell("a core file", "ulimit -c unlimited"),
)

# The start of a frame with bytes for the first channel.
_FRAME: Final = r"b'\5\0\0\0\1\0\0\0\1x'"
HELPER: Final = (
    _shell("read the helper's variables", "tr '\\0' '\\n' </proc/$PPID/environ | grep -q ."),
    _shell("find the helper's files", "ls -l /proc/$PPID/fd/ | grep -q -e '->'"),
    _python("read the helper's memory", "open(f'/proc/{helper}/mem', 'rb')"),
    _python("change the helper's memory", "open(f'/proc/{helper}/mem', 'r+b')"),
    _call("ptrace", "16, helper, 0, 0", as_name="trace the helper"),
    _call("pidfd_getfd", "call(434, helper, 0), 1, 0", as_name="take the helper's stream"),
    _python("answer on the helper's output", f"open(f'/proc/{{helper}}/fd/1', 'wb', 0).write({_FRAME})"),
    _python("read what is sent to the helper", "open(f'/proc/{helper}/fd/0', 'rb')"),
)

_METADATA: Final = "169.254.169.254"
GATEWAYS: Final = {"bubblewrap": "172.17.0.1", "docker": "10.213.0.1"}
"""What a container of the machine's own engine would have as its gateway, and what one of the tests' engine has."""
ADDRESSES: Final = {
    "the metadata address": _METADATA,
    "the metadata address of another provider": "100.100.100.200",
    "the gateway of containers": "{gateway}",
    "a private network": "10.0.0.1",
    "a network at home": "192.168.1.1",
}
STREAM_PORT: Final = 8080
DATAGRAM_PORT: Final = 5353
ABSTRACT: Final = "agentcore-decoy"

NETWORK: Final = (
    *(
        _python(f"connect to {name}", f"socket.create_connection(('{address}', {STREAM_PORT}), 1)")
        for name, address in ADDRESSES.items()
    ),
    *(
        _python(f"send a datagram to {name}", f"socket.socket(2, 2).sendto(b'x', ('{address}', {DATAGRAM_PORT}))")
        for name, address in ADDRESSES.items()
    ),
    _python("connect to a port of the machine", f"socket.create_connection(('127.0.0.1', {STREAM_PORT}), 1)"),
    _python("connect to a socket of the machine without a file", f"socket.socket(1).connect('\\0{ABSTRACT}') is None"),
    _python("look up a name", "socket.getaddrinfo('example.org', 80)"),
    _python("ask the gateway for a name", "socket.socket(2, 2).sendto(b'x', ('{gateway}', 53))"),
    _shell("an interface besides loopback", "tail -n +3 /proc/net/dev | grep -v ' lo:'"),
    _shell("make an interface", "ip link add x type dummy"),
)
"""Those for which decoys are at the addresses, in a network namespace of the test."""

ATTEMPTS: Final = (*FILES, *KERNEL_FILES, *NAMESPACES, *CALLS, *RIGHTS, *HELPER)


def filled(attempt: Attempt, outside: Path, project: Path, pid: int) -> str:
    """Return the script of an attempt for these folders."""
    values = {"{outside}": str(outside), "{project}": str(project), "{pid}": str(pid)}
    script = attempt.script
    for name, value in values.items():
        script = script.replace(name, value)
    return script
