"""The facts that an engine and an image report of themselves, as far as boxes need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentcore.errors import WorkspaceError

DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """The abilities of the engine."""

    address: str
    root_dir: str
    """The folder with all of its containers and volumes."""
    driver: str
    """Of its storage, as "overlay2"."""
    cpus: int
    runtimes: tuple[str, ...]
    has_seccomp: bool
    maps_users: bool
    """True if a user id inside is another one outside (rootless, userns-remap)."""
    unlimited: tuple[str, ...]
    """One sentence for each limit that it does not keep."""

    def check_runtime(self, runtime: str | None) -> None:
        """Refuse a runtime that it does not have.

        Raises:
            WorkspaceError: It names those that there are.
        """
        if runtime is not None and runtime not in self.runtimes:
            known = ", ".join(repr(name) for name in self.runtimes)
            raise WorkspaceError(
                f"runtime={runtime!r} is not known to this engine, which has {known}. Write one of them, or leave it out."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """The facts of an image."""

    digest: str
    """The id of its content."""
    path: str
    """Its `PATH`."""


def read_engine_facts(address: str, info: Mapping[str, Any]) -> EngineFacts:
    """Read what `GET /info` says."""
    security: list[str] = info.get("SecurityOptions") or []
    runtimes: dict[str, Any] = info.get("Runtimes") or {}
    limits = {
        "MemoryLimit": "This engine cannot limit memory.",
        "SwapLimit": "This engine cannot limit swap: the memory limit does not count it.",
        "PidsLimit": "This engine cannot limit how many processes there are.",
        "CpuCfsQuota": "This engine cannot limit the use of the processors.",
    }
    return EngineFacts(
        address=address,
        root_dir=str(info.get("DockerRootDir") or ""),
        driver=str(info.get("Driver") or ""),
        cpus=int(info.get("NCPU") or 1),
        runtimes=tuple(sorted(runtimes)),
        has_seccomp=any("name=seccomp" in each and "unconfined" not in each for each in security),
        maps_users=any(each.startswith(("name=rootless", "name=userns")) for each in security),
        unlimited=tuple(sentence for key, sentence in limits.items() if not info.get(key)),
    )


def read_image_facts(details: Mapping[str, Any]) -> ImageFacts:
    """Read what `GET /images/{name}/json` says."""
    config: Mapping[str, Any] = details.get("Config") or {}
    variables: list[str] = config.get("Env") or []
    path = next((each.removeprefix("PATH=") for each in variables if each.startswith("PATH=")), "")
    return ImageFacts(digest=str(details.get("Id") or ""), path=path or DEFAULT_PATH)
