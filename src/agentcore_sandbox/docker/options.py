"""`DockerOptions`: the checked arguments of a `DockerWorkspace`, but for what only the machine can tell (see `mounts`)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from os import PathLike
from typing import Any, Final, Literal

from pydantic import JsonValue

from agentcore_sandbox.network.policy import NetworkPolicy, check_policy, record_policy

PullPolicy = Literal["missing", "never", "always"]

ROOT: Final = "/workspace"
"""The project's folder inside."""
OWN: Final = "/agentcore"
"""The folder of a box's own volume: home, and what tools keep aside."""
DEFAULT_USER: Final = (1000, 1000)

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_USER: Final = re.compile(r"(\d{1,10})(?::(\d{1,10}))?")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_BOX: Final = re.compile(r"[0-9a-z]{8,32}")
RECORDED: Final = (
    "image", "mount", "network", "memory", "cpus", "pids", "disk", "user", "keep", "pull", "runtime", "idle_seconds", "tmp_size",
)  # fmt: skip
"""The arguments that a record has, beside the names of variables."""
_LARGEST_ID: Final = (1 << 32) - 2
_LEAST_MEMORY: Final = 64 << 20
_LEAST_PIDS: Final = 16


@dataclass(frozen=True, kw_only=True)
class DockerOptions:
    """The options of a box, checked. `parse_options` makes it."""

    image: str
    mount: str | None
    copy: str | None
    network: NetworkPolicy
    memory: int
    cpus: float
    pids: int
    disk: int | None
    user: tuple[int, int] | None
    """The ids of user and group; None: the owner of the mounted folder, else `DEFAULT_USER`."""
    keep: bool
    pull: PullPolicy
    runtime: str | None
    env: Mapping[str, str] = field(repr=False)
    idle_seconds: float
    tmp_size: int

    def record(self) -> dict[str, JsonValue]:
        """Return the arguments that make it again; of variables the names alone."""
        params: dict[str, JsonValue] = {
            "image": self.image,
            "mount": self.mount,
            "network": record_policy(self.network),
            "memory": self.memory,
            "cpus": self.cpus,
            "pids": self.pids,
            "disk": self.disk,
            "user": None if self.user is None else "{}:{}".format(*self.user),
            "keep": self.keep,
            "pull": self.pull,
            "runtime": self.runtime,
            "idle_seconds": self.idle_seconds,
            "tmp_size": self.tmp_size,
        }
        if self.env:
            params["env"] = list(self.env)
        return params

    def bounds(self) -> dict[str, JsonValue]:
        """Return what decides what the box may do: the part of the record that its labels vouch for."""
        names = ("mount", "network", "memory", "cpus", "pids", "disk", "user", "runtime", "tmp_size")
        record = self.record()
        return {name: record[name] for name in names}


def parse_options(
    *,
    image: str,
    mount: str | PathLike[str] | None = None,
    copy: str | PathLike[str] | None = None,
    network: NetworkPolicy | str = "none",
    memory: int | str = "2g",
    cpus: float = 2,
    pids: int = 512,
    disk: int | str | None = None,
    user: int | str | None = None,
    keep: bool = False,
    pull: str = "missing",
    runtime: str | None = None,
    env: Mapping[str, str] | None = None,
    idle_seconds: float = 1800,
    tmp_size: int | str = "512m",
) -> DockerOptions:
    """Check the arguments of a `DockerWorkspace`.

    Raises:
        ValueError: One of them cannot be used; the message says what to write instead.
    """
    if not _IMAGE.fullmatch(image) or ".." in image:
        raise ValueError(f"image={image!r} is not the name of an image: write it as in image='python:3.12-slim'.")
    if mount is not None and copy is not None:
        raise ValueError("Pass mount= (the box works in the folder itself) or copy= (in a copy of it), not both.")
    if disk is not None and mount is not None:
        raise ValueError(
            "disk= cannot limit a mounted folder, which is on this machine's disk: pass copy= in place of mount=."
        )
    amount = parse_size("memory", memory)
    if amount < _LEAST_MEMORY:
        raise ValueError(f"memory={memory!r} is too little for a box: write at least '64m'.")
    if not (isfinite(cpus) and cpus >= 0.01):
        raise ValueError(f"cpus={cpus!r} must be at least 0.01: cpus=0.5 is half of a processor.")
    if pids < _LEAST_PIDS:
        raise ValueError(f"pids={pids} is too few for a box: write at least {_LEAST_PIDS}.")
    return DockerOptions(
        image=image,
        mount=None if mount is None else _absolute("mount", mount),
        copy=None if copy is None else os.fspath(copy),
        network=_parse_network(network),
        memory=amount,
        cpus=float(cpus),
        pids=pids,
        disk=None if disk is None else parse_size("disk", disk),
        user=None if user is None else _parse_user(user),
        keep=keep,
        pull=_parse_pull(pull),
        runtime=runtime,
        env=dict(env or {}),
        idle_seconds=float(idle_seconds),
        tmp_size=parse_size("tmp_size", tmp_size),
    )


def parse_size(name: str, value: int | str) -> int:
    """Return a number of bytes: a whole number, or text like "512m" or "2g".

    Raises:
        ValueError: It is neither.
    """
    matched = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = int(float(matched[1]) * _UNITS[matched[2].lower()]) if matched else value
    if not isinstance(size, int) or size <= 0:
        raise ValueError(
            f"{name}={value!r} is not a size: write bytes as a number, or text as in {name}='2g' or '512m'."
        )
    return size


def check_id(box: str) -> str:
    """Return the id of a box, or refuse what is not one.

    Raises:
        ValueError: It cannot be one.
    """
    if not _BOX.fullmatch(box):
        raise ValueError(f"box={box!r} is not the id of a box: `agentcore sandbox list` shows them.")
    return box


def check_digest(digest: str) -> str:
    """Return the digest of an image, or refuse what is not one.

    Raises:
        ValueError: It cannot be one.
    """
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"digest={digest!r} is not the digest of an image.")
    return digest


def _absolute(name: str, path: str | PathLike[str]) -> str:
    text = os.fspath(path)
    if not os.path.isabs(text):
        # The current folder is another one for the program that opens the conversation again.
        raise ValueError(f"{name}={text!r} is a relative path: write {name}={os.path.abspath(text)!r}.")
    if "\0" in text:
        raise ValueError(f"{name}={text!r} is not a path.")
    return text


def _parse_network(network: NetworkPolicy | str) -> NetworkPolicy:
    if network == "host":
        raise ValueError(
            "network='host' would be this machine's own network, with all that listens on it. Write network='none', a list of"
            " hosts as in network=Allow('example.org'), or network='full'."
        )
    return check_policy(network)


def _parse_pull(pull: Any) -> PullPolicy:
    if pull not in ("missing", "never", "always"):
        raise ValueError(f"pull={pull!r} is not known: write 'missing' (pull what is not here), 'never' or 'always'.")
    return pull


def _parse_user(user: int | str) -> tuple[int, int]:
    matched = _USER.fullmatch(str(user))
    ids = (int(matched[1]), int(matched[2] or matched[1])) if matched else (-1, -1)
    if not all(0 <= each <= _LARGEST_ID for each in ids):
        raise ValueError(f"user={user!r} must be ids, because names differ between images: write user='1000:1000'.")
    return ids
