"""Checkpoints: the files of a workspace, saved in a git store outside of the project and brought back from there.

Above: the conversation, which says when, and whose log names them. Below: any workspace with git and Python in it. All is done by
one program that runs in the workspace (`checkpoint_program.py`), since each command is a round trip to a container.

Saved is what git would not ignore: untracked files too, and those in repositories inside the project. Left alone are what a
`.gitignore` names, every `.git`, and files of more than 100 MB.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import json
from importlib.resources import files
from typing import Any, Final, Protocol, cast

from agentcore._threads import Threads
from agentcore._value import Value
from agentcore.errors import WorkspaceError
from agentcore.workspace.files import shown_name
from agentcore.workspace.protocol import Command
from agentcore.workspace.values import CommandResult

LARGEST_FILE: Final = 100_000_000
"""The size in bytes above which a file is not saved."""

_STORE: Final = "checkpoints"
_READS: Final = Threads("checkpoints", 1)
_MAX_OUTPUT: Final = 16 * 1024 * 1024
_NAMED: Final = 100
_NO_GIT: Final = 3
_NO_CHECKPOINT: Final = 4
_NO_PYTHON: Final = 127
# With isolation where it is known: nothing of the project is imported.
_START: Final = """
for python in python3 python; do
    if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -c "$@"; fi
done
exit 127
"""
_LOAD: Final = """
import sys, types
files = types.ModuleType("agentcore.workspace.checkpoint_files")
sys.modules[files.__name__] = files
exec(sys.argv[1], files.__dict__)
exec(sys.argv[2], {"__name__": "__main__"})
"""


class LeftOut(Value):
    """A file or folder that is in no checkpoint, and that is left as it is when files are brought back."""

    path: str
    """Relative to the workspace's root. Bytes that are not UTF-8 are shown as `\\xNN`."""
    reason: str
    """As in "larger than 100 MB"."""


class Checkpoint(Value):
    """Files that were saved."""

    id: str
    """The hash of a tree in the store; the same for the same files."""
    files: int
    """How many files and links it has."""
    left_out: tuple[LeftOut, ...] = ()
    """The files that it has not, those that are ignored aside; of many, the first ones."""


class RestoredFiles(Value):
    """The outcome of bringing files back."""

    written: int
    """How many files and links were written."""
    removed: int
    """How many were removed, because they came after the checkpoint."""


class _Runs(Protocol):
    @property
    def root(self) -> str: ...

    async def run(self, command: Command, *, stdin: bytes | None, max_output: int) -> CommandResult: ...

    async def private_folder(self, name: str) -> str: ...


async def save_files(workspace: _Runs, folder: str) -> Checkpoint:
    """Save the files of a workspace.

    Args:
        workspace: Open, and with nothing at work in it that changes files.
        folder: The name of the private folder that the store is in.

    Raises:
        WorkspaceError: They cannot be saved: there is no git or no Python, or the disk is full.
    """
    done = await _run(workspace, {"do": "save", "store": await _store(workspace, folder)})
    return Checkpoint(id=done["id"], files=done["files"], left_out=_left_out(done))


async def restore_files(
    workspace: _Runs, folder: str, checkpoint: str, *, saved_in: str | None = None
) -> RestoredFiles:
    """Make the files of a workspace those of a checkpoint. It may be done twice; what is the same already is not touched.

    Args:
        workspace: Open, and with nothing at work in it that changes files.
        folder: The name of the private folder that the store is in.
        checkpoint: The `Checkpoint.id`.
        saved_in: The name of the private folder in which it was saved, where that is another one.

    Raises:
        WorkspaceError: There is no such checkpoint, or some files could not be brought back; the others were.
    """
    asked = {"do": "restore", "store": await _store(workspace, folder), "id": checkpoint}
    asked["from"] = await _store(workspace, saved_in) if saved_in is not None else asked["store"]
    done = await _run(workspace, asked)
    if failed := cast("list[str]", done["failed"]):
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        listed = "; ".join(shown_name(each) for each in failed[:5])
        raise WorkspaceError(f"Some files could not be brought back ({listed}{more}); all others were.")
    return RestoredFiles(written=done["written"], removed=done["removed"])


async def _store(workspace: _Runs, folder: str) -> str:
    return f"{await workspace.private_folder(folder)}/{_STORE}"


def _left_out(done: dict[str, Any]) -> tuple[LeftOut, ...]:
    named = cast("list[tuple[str, str]]", done["left_out"])
    return tuple(LeftOut(path=shown_name(path), reason=reason) for path, reason in named[:_NAMED])


async def _run(workspace: _Runs, asked: dict[str, Any]) -> dict[str, Any]:
    sources = await _READS.run(_read_sources)
    stdin = json.dumps({**asked, "limit": LARGEST_FILE}).encode()
    result = await workspace.run(["sh", "-c", _START, "sh", _LOAD, *sources], stdin=stdin, max_output=_MAX_OUTPUT)
    match result.exit_code:
        case 0 if not result.truncated:
            return cast("dict[str, Any]", json.loads(result.out.head))
        case 0:
            reason = "its answer is too long"
        case code if code == _NO_PYTHON:
            reason = "there is no python3 in it. Install it there"
        case code if code == _NO_GIT:
            reason = "there is no git in it. Install it there"
        case code if code == _NO_CHECKPOINT:
            reason = f"its store has no checkpoint {asked['id']}"
        case code:
            last = result.stderr.strip().splitlines()[-1:] or [f"exit code {code}"]
            reason = last[0]
    what = "saved" if asked["do"] == "save" else "brought back"
    raise WorkspaceError(f"The files in {workspace.root!r} cannot be {what}: {reason}.")


def _read_sources() -> tuple[str, ...]:
    here = files("agentcore.workspace")
    return tuple(
        here.joinpath(name).read_text(encoding="utf-8") for name in ("checkpoint_files.py", "checkpoint_program.py")
    )
