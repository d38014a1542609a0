"""The changes in a repository, read from git itself, in whichever workspace can run it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

import anyio

from agentcore.errors import NotARepository, WorkspaceError
from agentcore.workspace.files import shown_name
from agentcore.workspace.protocol import Command
from agentcore.workspace.values import ChangeStatus, CommandResult, GitChange

# One script, because each command is a round trip to a container or another machine. Files that git does not know yet are
# made known in a copy of the index, so that they show in diffs and take part in finding moves, while the repository itself
# stays as it is; the copy keeps its time, by which git judges which files it must look into again.
#
# No program is run that the repository names: a filter, a hook, a watcher of files, a way to fetch what is missing.
_SCRIPT: Final = r"""
scratch=${TMPDIR:-/tmp}/$1
path=$2
shift 2
unset $(git rev-parse --local-env-vars)
export LC_ALL=C GIT_OPTIONAL_LOCKS=0 GIT_LITERAL_PATHSPECS=1 GIT_ALLOW_PROTOCOL=none
without=(-c core.fsmonitor=false -c core.hooksPath=/dev/null)
while IFS= read -r -d '' name; do
    case $name in
        *=*) echo "its configuration has a filter with = in its name" >&2; exit 1 ;;
        *.required) without+=(-c "$name=false") ;;
        *) without+=(-c "$name=") ;;
    esac
done < <(for scope in --local --worktree; do
    git config "$scope" --includes --null --name-only --get-regexp '^filter\..*\.(clean|smudge|process|required)$' 2>/dev/null
done)
git() { command git --no-pager "${without[@]}" "$@"; }
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
mkdir -m 700 "$scratch" || exit
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/objects"
[ ! -e "$index" ] || cp -p "$index" "$scratch/index" || exit
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="\"${objects//\"/\\\"}\""
# What can't be read, as a repository without commits in a folder, is left out.
git -c advice.addEmbeddedRepo=false add --intent-to-add --ignore-errors -- . 2>/dev/null
git -c core.quotePath=false diff --no-ext-diff --no-textconv --no-color --ignore-submodules=dirty --submodule=short \
    --find-renames --relative --src-prefix=a/ --dst-prefix=b/ "$@" "$base" -- "$path"
"""
_REMOVE: Final = 'rm -rf "${TMPDIR:-/tmp}/$1"'
_MAX_OUTPUT: Final = 32 * 1024 * 1024
_GIT_SECONDS: Final = 60.0
_REMOVE_SECONDS: Final = 10.0
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
    scratch = f"agentcore-git-{os.urandom(8).hex()}"
    result = None
    try:
        with anyio.move_on_after(_GIT_SECONDS):
            result = await workspace.run(
                ["bash", "-c", _SCRIPT, "bash", scratch, path, *options], max_output=_MAX_OUTPUT
            )
    finally:
        if result is None:  # it was killed, and could not clear up
            with suppress(WorkspaceError), anyio.move_on_after(_REMOVE_SECONDS, shield=True):
                await workspace.run(["sh", "-c", _REMOVE, "sh", scratch], max_output=0)
    if result is None:
        raise WorkspaceError(
            f"git did not find the changes in {workspace.root!r} within {_GIT_SECONDS:g} s. "
            "Have it ignore what is generated (.gitignore), and remove pipes with the name of a file of git's."
        )
    if result.exit_code != 0:
        if "not a git repository" in result.stderr:
            raise NotARepository(workspace.root)
        raise WorkspaceError(f"git could not tell the changes in {workspace.root!r}: {result.stderr.strip()}")
    return result


def _name(path: bytes) -> str:
    return shown_name(os.fsdecode(path))
