"""The changes in a repository, read from git itself, in whichever workspace can run it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Protocol

from agentcore.errors import NotARepository, WorkspaceError
from agentcore.workspace.files import shown_name
from agentcore.workspace.protocol import Command
from agentcore.workspace.values import ChangeStatus, CommandResult, GitChange

# One script, because each command is a round trip to a container or another machine. Files that git does not know yet are
# made known in a copy of the index, so that they show in diffs and take part in finding moves, while the repository itself
# stays as it is; the copy keeps its time, by which git judges which files it must look into again.
_SCRIPT: Final = r"""
unset $(git rev-parse --local-env-vars)
export LC_ALL=C GIT_OPTIONAL_LOCKS=0 GIT_LITERAL_PATHSPECS=1
inside=$(git rev-parse --is-inside-work-tree) || exit
[ "$inside" = true ] || { echo "not a git repository (but a part of one that holds no files)" >&2; exit 128; }

if base=$(git rev-parse --quiet --verify 'HEAD^{commit}'); then
    for branch in "$(git symbolic-ref --quiet refs/remotes/origin/HEAD)" \
        refs/remotes/origin/main refs/remotes/origin/master \
        "refs/heads/$(git config init.defaultBranch)" refs/heads/main refs/heads/master
    do
        if git rev-parse --quiet --verify "$branch^{commit}" >/dev/null; then
            shared=$(git merge-base "$branch" HEAD) && base=$shared
            break
        fi
    done
else
    base=$(git hash-object -t tree /dev/null)
fi

objects=$(cd "$(git rev-parse --git-path objects)" && pwd) || exit
objects=${objects//\\/\\\\}
index=$(git rev-parse --git-path index)
scratch=$(mktemp -d) || exit
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/objects"
[ ! -e "$index" ] || cp -p "$index" "$scratch/index" || exit
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="\"${objects//\"/\\\"}\""
# What can't be read, as a repository without commits in a folder, is left out.
git -c advice.addEmbeddedRepo=false add --intent-to-add --ignore-errors -- . 2>/dev/null
path=$1
shift
git -c core.quotePath=false -c core.fsmonitor=false diff --no-ext-diff --no-textconv --no-color \
    --find-renames --relative --src-prefix=a/ --dst-prefix=b/ "$@" "$base" -- "$path"
"""
_MAX_OUTPUT: Final = 32 * 1024 * 1024
_STATUSES: Final[Mapping[str, ChangeStatus]] = {"A": "added", "D": "deleted", "R": "moved"}


class _Runs(Protocol):
    @property
    def root(self) -> str: ...

    async def run(self, command: Command, *, max_output: int) -> CommandResult: ...


async def git_changes(workspace: _Runs) -> tuple[GitChange, ...]:
    """Do what `Workspace.git_changes` says, by what the workspace's `run` gives."""
    result = await _diff(workspace, ".", "--name-status", "-z")
    if result.truncated:
        raise WorkspaceError(
            f"The list of changes in {workspace.root!r} is longer than {_MAX_OUTPUT} bytes. "
            "Have git ignore what is generated (.gitignore)."
        )
    changes: dict[str, GitChange] = {}
    words = iter(result.out.head.split(b"\0"))
    for status in words:
        if not status:
            break
        letter = chr(status[0])
        old_path = _name(next(words)) if letter == "R" else None
        path = _name(next(words))
        # A file with a merge conflict is told twice.
        changes.setdefault(path, GitChange(path=path, status=_STATUSES.get(letter, "updated"), old_path=old_path))
    return tuple(changes.values())


async def git_diff(workspace: _Runs, path: str | None = None) -> str:
    """Do what `Workspace.git_diff` says, by what the workspace's `run` gives. `path` is absolute."""
    return (await _diff(workspace, path or ".")).stdout


async def _diff(workspace: _Runs, path: str, *options: str) -> CommandResult:
    command = ["bash", "-c", _SCRIPT, "bash", path, *options]
    result = await workspace.run(command, max_output=_MAX_OUTPUT)
    if result.exit_code != 0:
        if "not a git repository" in result.stderr:
            raise NotARepository(workspace.root)
        raise WorkspaceError(f"git could not tell the changes in {workspace.root!r}: {result.stderr.strip()}")
    return result


def _name(path: bytes) -> str:
    return shown_name(os.fsdecode(path))
