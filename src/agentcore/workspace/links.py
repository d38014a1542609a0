"""Where paths lead, whatever links are on the way."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final

from agentcore.errors import PathError, WorkspaceError
from agentcore.workspace.protocol import Workspace

# Prints each path with its links followed, whether all of it exists or not. The realpath of some systems cannot do that.
# The x keeps line feeds at the end of a name, which the shell would take off, and another file would be looked at.
_FOLLOW: Final = r"""
follow() {
  local path=$1 rest= links=0 target
  while [ "$path" != / ]; do
    if [ -L "$path" ]; then
      links=$((links + 1))
      [ "$links" -gt 40 ] && return 40
      target=$(readlink -- "$path" && echo x) || return 1
      target=${target%??}
      case $target in /*) path=$target ;; *) path=${path%/*}/$target ;; esac
    elif [ -d "$path" ]; then
      path=$(cd -P -- "$path" && pwd -P && echo x) || return 1
      path=${path%??}
      break
    else
      rest=/${path##*/}$rest
      path=${path%/*}
      path=${path:-/}
    fi
  done
  printf '%s\0' "${path%/}${rest:-}"
}
for each; do
  follow "$each" || printf '?%s\0' "$?"
done
"""
_LOOP: Final = "?40"
# The most arguments of one command, far below what systems take.
_AT_ONCE: Final = 200


async def real_paths(workspace: Workspace, paths: Sequence[str]) -> list[str | PathError]:
    """Return absolute paths with links followed, or why that fails, in one round trip. The paths need not exist.

    Raises:
        WorkspaceError: The workspace could not do it.
    """
    found: list[str | PathError] = []
    for start in range(0, len(paths), _AT_ONCE):
        found += await _real_paths(workspace, paths[start : start + _AT_ONCE])
    return found


async def _real_paths(workspace: Workspace, paths: Sequence[str]) -> list[str | PathError]:
    result = await workspace.run(["bash", "-c", _FOLLOW, "bash", *paths], cwd="/", max_output=_AT_ONCE * 8_192)
    lines = result.out.head.decode(errors="surrogateescape").split("\0")[:-1]
    if result.exit_code or len(lines) != len(paths):
        raise WorkspaceError(
            f"Cannot find out where {paths[0]!r} leads: {result.stderr.strip() or 'a link is broken'}."
        )
    return [_real_path(path, line) for path, line in zip(paths, lines, strict=True)]


def _real_path(path: str, line: str) -> str | PathError:
    if line == _LOOP:
        return PathError(path, "invalid", f"{path!r} is a link that leads back to itself.")
    if line.startswith("?"):
        return PathError(path, "denied", f"Cannot find out where {path!r} leads: a folder on the way can't be opened.")
    return posixpath.normpath(line or "/")
