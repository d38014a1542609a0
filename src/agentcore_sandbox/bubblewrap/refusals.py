"""Why there is no bubblewrap box on this machine, in sentences that say what to do."""

from __future__ import annotations

from pathlib import Path

from agentcore.errors import WorkspaceError

_INSTEAD = "Or use DockerWorkspace."


def missing_bwrap() -> WorkspaceError:
    """Return the error of a machine without bubblewrap."""
    return WorkspaceError(
        f"bwrap is not installed. Install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`). {_INSTEAD}"
    )


def too_old(version: str) -> WorkspaceError:
    """Return the error of a bubblewrap that leaves nested namespaces open."""
    return WorkspaceError(
        f"{version!r} is too old: bubblewrap 0.8 or later is needed, which closes nested namespaces. {_INSTEAD}"
    )


def no_filter(system: str, machine: str) -> WorkspaceError:
    """Return the error of a system that has no namespaces, or a processor whose calls are not known here."""
    if system != "Linux":
        return WorkspaceError(f"bubblewrap needs Linux, and this is {system}. Use DockerWorkspace.")
    return WorkspaceError(
        f"There is no filter of system calls for {machine}: bubblewrap boxes need x86_64 or aarch64. {_INSTEAD}"
    )


def explain_failure(words: str, error: BaseException) -> WorkspaceError:
    """Return the error of a bubblewrap that ended before anything ran in it. Blocks.

    Args:
        words: What it wrote to its standard error.
        error: What was noticed here.
    """
    shown = " ".join(words.split()) or f"{type(error).__name__}: {error}".rstrip(": ")
    return WorkspaceError(f"bubblewrap could not make a box: {shown}. {_advice(words)}")


def _advice(words: str) -> str:
    if _setting("user/max_user_namespaces") == "0":
        return "User namespaces are switched off here: `sysctl user.max_user_namespaces=10000` switches them on."
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "User namespaces are kept to root here: `sysctl kernel.unprivileged_userns_clone=1` allows them."
    if "proc" in words and "mount" in words:
        return "Inside a container this needs an engine that does not mask /proc (Docker: `--security-opt systempaths=unconfined`)."
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor keeps user namespaces from programs without a profile here: add one for bwrap, or "
            "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
        )
    if "namespace" in words or "uid map" in words:
        return (
            "This machine or container allows no user namespaces: in a container, its seccomp profile may refuse them."
        )
    return "Try it by hand: `bwrap --unshare-user --ro-bind / / true`."


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
