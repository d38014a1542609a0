"""The state of a shell and its foreground program, read from /proc: whether it waits for input, or is stopped.

The workspace reads it, so it works wherever the shell runs. Where /proc does not tell, nothing is known.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, cast

from agentcore.errors import WorkspaceError
from agentcore.workspace import Workspace

ForegroundState: TypeAlias = Literal["reading", "stopped"]

# A process that sleeps in a read of a terminal is at `n_tty_read`, or in newer kernels at `wait_woken`, as one that reads a
# socket is: then the file that it reads has to be a device. Line editors wait in a select of file 0 alone, without a limit. What
# a process asked the system for is shown to few; where it is not, a program without sockets can only be reading the terminal.
_SCRIPT: Final = r"""
read -r line <"/proc/$1/stat" || exit 3
set -- "$1" ${line##*) }
[ "$2" != T ] || { echo stopped; exit 0; }
session=$5 group=$7
for folder in /proc/[0-9]*; do
  read -r line <"$folder/stat" || continue
  set -- ${line##*) }
  [ "$1 $3 $4" = "S $group $session" ] || continue
  where= call= first= timeout=
  read -r where <"$folder/wchan"
  case $where in n_tty_read | wait_woken | *select* | poll_schedule_timeout*) ;; *) continue ;; esac
  read -r call first _ _ _ timeout _ <"$folder/syscall"
  case $where:$call in
    n_tty_read:*) ;;
    wait_woken:[0-9]*) [ -c "$folder/fd/$((first))" ] || continue ;;
    wait_woken:*)
      [ -c "$folder/fd/0" ] || continue
      for file in "$folder"/fd/*; do [ ! -S "$file" ] || continue 2; done
      ;;
    *:[0-9]*) [ "$first $timeout" = "0x1 0x0" ] && [ -c "$folder/fd/0" ] || continue ;;
    *) continue ;;
  esac
  echo reading
  exit 0
done
"""


async def foreground_state(workspace: Workspace, shell: int) -> ForegroundState | None:
    """Return "reading" if a program in the foreground of the shell's terminal waits for input, "stopped" if the shell is stopped.

    None if neither is so, or cannot be found out. `shell` is the number of the shell's process.
    """
    try:
        found = await workspace.run(["bash", "-c", f"exec 2>/dev/null\n{_SCRIPT}", "bash", str(shell)])
    except WorkspaceError:
        return None
    word = found.stdout.strip()
    return cast("ForegroundState", word) if word in {"reading", "stopped"} else None
