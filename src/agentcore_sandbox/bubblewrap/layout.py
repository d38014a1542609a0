"""The arguments of bubblewrap: the namespaces of a box, and the files that it has.

Inside are the system's programs (/usr, read-only), the few files of /etc that programs need, the project, its folder for what tools keep
aside, and empty folders in memory; nothing of the home, of /var, /run, /sys or of other projects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

HOME: Final = "/home/user"
USER: Final = "agent"
UID: Final = 1000
"""Inside, whoever runs the box: a root without rights confuses programs (tar, apt), and its number would be that of this machine's."""
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_SHM_BYTES: Final = 64 << 20
# In /tmp, so that one size holds for both; with a name that `rm /tmp/*` passes over.
_HOME_IN_TMP: Final = "/tmp/.home"  # noqa: S108 the box's own

_LINKED: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Never a folder that may hold keys, as /etc/ssl does in /etc/ssl/private.
_ETC: Final = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/debian_version",
    "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
    "/etc/os-release", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/etc/timezone",
)  # fmt: skip
_ETC_WITH_NETWORK: Final = ("/etc/resolv.conf",)
# As Docker has it. /proc/sys and its like belong to the machine, and root of this machine may write there without any capability.
_PROC_READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_PROC_HIDDEN_FILES: Final = (
    "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/mtrr", "/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats",
)  # fmt: skip
_PROC_HIDDEN_FOLDERS: Final = ("/proc/acpi", "/proc/asound", "/proc/scsi")

FILES: Final = {
    "/etc/passwd": f"{USER}:x:{UID}:{UID}::{HOME}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
    "/etc/group": f"{USER}:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
}
"""The files that are made for the box."""


class Layout(NamedTuple):
    """The folders of a box."""

    root: str
    """The project: the same path inside and outside, and the only one of this machine's that may be written, beside `state`."""
    state: str
    read_only: tuple[str, ...] = ()
    """Folders and files that are shown besides, under their own paths."""
    tmp_bytes: int = 1 << 30
    """Of /tmp, which has the home in it, too."""
    shares_network: bool = False
    python: str | None = None
    """A folder with another Python than the system's, where the system has none."""

    @property
    def search_path(self) -> str:
        return f"{PATH}:{self.python}/bin" if self.python else PATH


def find_python() -> str | None:
    """Return the folder of the Python that runs this, if the system has none at its usual place. Blocks."""
    return None if os.path.exists("/usr/bin/python3") else os.path.realpath(sys.base_prefix)


def build_arguments(layout: Layout, data: Sequence[tuple[int, str]]) -> list[str]:
    """Return the arguments of bwrap without the command. Blocks: it looks at which files there are.

    Args:
        layout: The folders.
        data: Open files with the content of `FILES`, and where each goes.
    """
    return [
        *_namespaces(layout),
        *_system(layout),
        *(each for number, path in data for each in ("--ro-bind-data", str(number), path)),
        *_proc_and_devices(min(_SHM_BYTES, layout.tmp_bytes)),
        *_writable(layout),
        "--chdir", layout.root,
        "--remount-ro", "/",
    ]  # fmt: skip


def _namespaces(layout: Layout) -> Iterator[str]:
    # --unshare-user and not -try: without it there is no box. --disable-userns because nested namespaces give back all capabilities.
    yield from (
        "--unshare-user",
        "--disable-userns",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup",
    )
    if not layout.shares_network:
        yield "--unshare-net"
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", str(UID), "--gid", str(UID))
    yield from (
        "--hostname",
        "sandbox",
        "--clearenv",
        "--setenv",
        "PATH",
        layout.search_path,
        "--setenv",
        "LANG",
        "C.UTF-8",
    )


def _system(layout: Layout) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for path in _LINKED:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    for path in (*_ETC, *(_ETC_WITH_NETWORK if layout.shares_network else ())):
        yield from ("--ro-bind-try", path, path)
    if layout.python:
        yield from ("--ro-bind", layout.python, layout.python)


def _proc_and_devices(shm_bytes: int) -> Iterator[str]:
    yield from ("--proc", "/proc")
    for path in _PROC_READ_ONLY:
        yield from ("--ro-bind-try", path, path)
    for path in _PROC_HIDDEN_FILES:
        if os.path.exists(path):
            yield from ("--ro-bind", "/dev/null", path)
    for path in _PROC_HIDDEN_FOLDERS:
        if os.path.isdir(path):
            yield from ("--tmpfs", path, "--remount-ro", path)
    yield from (
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--size",
        str(shm_bytes),
        "--tmpfs",
        "/dev/shm",  # noqa: S108 the box's own
        "--remount-ro",
        "/dev",
    )


def _writable(layout: Layout) -> Iterator[str]:
    yield from ("--perms", "1777", "--size", str(layout.tmp_bytes), "--tmpfs", "/tmp")  # noqa: S108 the box's own
    yield from ("--perms", "0700", "--dir", _HOME_IN_TMP, "--symlink", _HOME_IN_TMP, HOME)
    for path in layout.read_only:
        yield from ("--ro-bind", path, path)
    # Last, so that they are there whatever lies above them.
    yield from ("--bind", layout.state, layout.state, "--bind", layout.root, layout.root)
