"""The configuration of a container: all that keeps what runs in it apart from this machine."""

from __future__ import annotations

import ast
import io
import tarfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

from agentcore_sandbox.box import Inside
from agentcore_sandbox.docker.facts import EngineFacts, ImageFacts
from agentcore_sandbox.docker.mounts import Placed
from agentcore_sandbox.docker.options import OWN, ROOT, DockerOptions
from agentcore_sandbox.network.policy import loosenings

# Without Python it stays for a while, so that the helper's own command can say so.
_FIND_PYTHON: Final = (
    'for name in python3 python; do if command -v "$name" >/dev/null 2>&1; then exec "$name" -I -S -c "$0" "$1"; fi; done;'
    " echo no python; sleep 20; exit 127"
)
NO_PYTHON: Final = "no python"
NO_SHELL: Final = ("executable file not found", "no such file or directory")
"""How the engine says that there is no `sh`."""
_SHM_SIZE: Final = 64 << 20
_BYTES_PER_FILE: Final = 4096
"""Of /tmp, for each file that it may hold: an empty one takes memory too, which ending the command does not give back."""
_FEWEST_FILES: Final = 1024
_OOM_SCORE: Final = 300
"""If this machine runs out of memory, boxes end before what else runs on it."""


def first_command(idle_seconds: float) -> list[str]:
    """Return the command of the first process. It reads a file: call it in a thread."""
    source = files("agentcore_sandbox.docker").joinpath("first_process.py").read_text(encoding="utf-8")
    # Without comments and docstrings, because `ps` shows all of it to the model.
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ["sh", "-c", _FIND_PYTHON, ast.unparse(tree), f"{idle_seconds:g}"]


def volumes_of(name: str, placed: Placed) -> dict[str, str]:
    """Return the volumes of the box with this name, and where they are inside."""
    volumes = {f"{name}-own": OWN}
    if placed.folder is None:
        volumes[f"{name}-work"] = ROOT
    return volumes


def make_folders(placed: Placed) -> bytes:
    """Return a tar archive of the folders that the box's user has in its volumes, which belong to root when they are made."""
    folders = {OWN: 0o700, f"{OWN}/home": 0o700, f"{OWN}/state": 0o700}
    if placed.folder is None:
        folders[ROOT] = 0o755
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder, mode in folders.items():
            member = tarfile.TarInfo(folder.lstrip("/"))
            member.type, member.mode = tarfile.DIRTYPE, mode
            member.uid, member.gid = placed.user
            archive.addfile(member)
    return buffer.getvalue()


def preparing_config(image: str, labels: Mapping[str, str], volumes: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration of a container that is never started: through it the folders get into the volumes.

    The container itself will not do, because nothing can be put below a root that is read-only.
    """
    return {
        "Image": image,
        "Entrypoint": ["none"],
        "Labels": dict(labels),
        "HostConfig": {"NetworkMode": "none", "Mounts": _volume_mounts(volumes)},
    }


def container_config(
    options: DockerOptions,
    facts: EngineFacts,
    placed: Placed,
    *,
    image: str,
    labels: Mapping[str, str],
    volumes: Mapping[str, str],
    command: list[str],
) -> dict[str, Any]:
    """Return the configuration of the container. Nothing of this program's environment is in it, nor a variable of `env`."""
    mounts = _volume_mounts(volumes)
    if placed.folder is not None:
        mounts.append(
            {"Type": "bind", "Source": placed.folder, "Target": ROOT, "BindOptions": {"Propagation": "rprivate"}}
        )
    host: dict[str, Any] = {
        "Mounts": mounts,
        "NetworkMode": "bridge" if options.network == "full" else "none",
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "Privileged": False,
        "ReadonlyRootfs": True,
        # Programs are built and run in /tmp, so it is not noexec; what is in it counts as the box's memory.
        "Tmpfs": {"/tmp": _tmpfs_options(options.tmp_size)},  # noqa: S108 - the container's own
        "ShmSize": _SHM_SIZE,
        "Memory": options.memory,
        "MemorySwap": options.memory,
        "NanoCpus": round(min(options.cpus, facts.cpus) * 1e9),
        "PidsLimit": options.pids,
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "OomScoreAdj": _OOM_SCORE,
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        "RestartPolicy": {"Name": "no"},
    }
    if options.runtime is not None:
        host["Runtime"] = options.runtime
    return {
        "Image": image,
        "Hostname": "box",
        "User": "{}:{}".format(*placed.user),
        "WorkingDir": "/",
        "Entrypoint": command,
        "Cmd": [],
        "Env": [],
        "Labels": dict(labels),
        # The image's own would run commands that nobody asked for.
        "Healthcheck": {"Test": ["NONE"]},
        # Nothing in it is to be saved by the first process; and it would not see another signal.
        "StopSignal": "SIGKILL",
        "HostConfig": host,
    }


def _tmpfs_options(size: int) -> str:
    return f"rw,exec,nosuid,nodev,size={size},nr_inodes={max(size // _BYTES_PER_FILE, _FEWEST_FILES)},mode=1777"


def make_inside(options: DockerOptions, image: ImageFacts) -> Inside:
    """Return what the helper has to know."""
    running = make_inside_running(image)
    return running.model_copy(update={"whole": True, "env": {**running.env, **options.env}})


def make_inside_running(image: ImageFacts) -> Inside:
    """Return what another helper has to know in a container that runs, where most is not its to end.

    It has the same state folder, by which the helpers know of each other; the values of the box's own variables are the first one's alone.
    """
    own = {"PATH": image.path, "HOME": f"{OWN}/home", "LANG": "C.UTF-8"}
    return Inside(root=ROOT, state=f"{OWN}/state", env=own, views=image.views)


def find_loosened(options: DockerOptions, facts: EngineFacts, placed: Placed) -> Iterator[str]:
    """Yield a sentence for each protection that the box has less of than the default, and for each limit that is not kept."""
    yield from loosenings(options.network)
    if options.network == "full":
        yield "Commands reach what listens on all addresses of this machine."
    if placed.user[0] == 0:
        yield "Commands run as root inside, without capabilities."
    if options.runtime is not None:
        yield f"The container is run by {options.runtime!r}, which this program knows nothing of."
    if not facts.has_seccomp:
        yield "This engine runs containers without a seccomp filter."
    yield from facts.unlimited
    if placed.folder is not None:
        yield f"Commands write in {placed.folder} of this machine; nothing limits how much."
    elif options.disk is None:
        yield "Nothing limits how much commands write on the disk."


def _volume_mounts(volumes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"Type": "volume", "Source": name, "Target": target} for name, target in volumes.items()]
