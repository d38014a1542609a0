"""What the shell is told: how to start, how to report, and commands in the form in which they are typed.

Everything is typed, as a person would, because a terminal is all that a workspace gives. So each line is short enough for
a terminal to take (1,024 bytes on macOS, 4,096 on Linux), and all in it is printable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["ENVIRONMENT", "HEIGHT", "MEND", "START", "WIDTH", "answer_line", "command_lines", "setup_lines"]

WIDTH: Final = 200
HEIGHT: Final = 50

START: Final = "stty -echo; exec bash --noprofile --norc --noediting +H -i"
"""Interactive, so that Ctrl-C ends a command and not the shell; without history expansion, because nobody means it."""

MEND: Final = r'\builtin : "$(\command stty sane -echo 2>/dev/null)"'
"""What brings a terminal back into the state in which commands find it.

In a substitution, which is no job: a signal that came as a job was started would leave it in the background, stopped.
"""

ENVIRONMENT: Final = dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "BAT_PAGER"), "cat") | {
    "AWS_PAGER": "",
    "DELTA_PAGER": "cat",
    "HISTFILE": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
}
"""Nothing stops to show a page at a time or opens a window to ask, git fails where it would ask who one is, and what an agent
types is no part of the user's history."""

# Two ways lead to a report. The line that is typed ends with it; where bash gives the line up (Ctrl-C, an error that ends
# all of it), PROMPT_COMMAND is the next thing it runs. Whoever comes second finds no number, and is silent.
# - It leaves `$?` as it was, and neither `set -e` nor an ERR trap sees it: it stands before `&&`.
# - What the user's `set -x` and traps show of it goes to /dev/null; `set -a`, `-v` and `-x` rest until the next command begins.
# - What is typed goes into no history, since values of secrets may be typed.
# - It asks DIRSTACK, since PWD is a variable that anybody may set.
# - It uses no name that a command may have made a function or read-only: builtins are asked for as such, and a function in
#   the place of `builtin` itself is removed. The line that is typed says the number again, should its variable be gone.
# - What was typed too late for the program that was to read it is read here, or it would be the next command: whoever types is
#   asked to type nothing more, and all is read until the answer comes. Nobody who listens takes two seconds for it. A signal
#   can have all of it begin again when the report is out already: it must not ask then, or it would read the next command away.
# - The prompts show nothing, but are not empty: an empty PS1 is a sign of a shell that is not interactive.
_AFTER: Final = r'{ __agentcore_report "$?" "%s" && \:; } >/dev/null 2>&1'
_SETUP: Final = (
    r"""
unset TMOUT MAILCHECK
set +o history
__agentcore_report() {
  \unset -f builtin
  case ${2:-0} in 0) \builtin return "$1" ;; esac
  \builtin local "__agentcore_set=${-//[!avx]/}" __agentcore_python= __agentcore_line= __agentcore_misses=
  case $__agentcore_set in
    ?*) \builtin set "+$__agentcore_set"; __agentcore_flags="\builtin set -$__agentcore_set;" ;;
    *) __agentcore_flags= ;;
  esac
  [[ ${__agentcore_answered-} == "$2" ]] || \builtin printf '\033]7717;%s\007' "$2" >/dev/tty
  until [[ ${__agentcore_answered-} == "$2" || $__agentcore_misses == xxxxxxxxx ]]; do
    if \builtin read -r -t 2 __agentcore_line </dev/tty; then
      [[ $__agentcore_line != *" agentcore $2" ]] || \builtin break
    elif (($? > 128)); then
      \builtin break
    else
      __agentcore_misses+=x
    fi
  done
  __agentcore_answered=$2
  \builtin set +o history
  \builtin hash python || \builtin hash python3
  __agentcore_python=${BASH_CMDS[python]-${BASH_CMDS[python3]-}}
  \builtin printf '\033]7717;%s;%s\037%s\037%s\007\n' "$2" "$1" \
    "${DIRSTACK[0]//[[:cntrl:]]/?}" "${__agentcore_python//[[:cntrl:]]/?}" >/dev/tty
  __agentcore_nonce=0
  \builtin unset PROMPT_COMMAND PS0
  PROMPT_COMMAND='"""
    + _AFTER % "$__agentcore_nonce"
    + r"""' PS1='\[\]' PS2='\[\]'
  \builtin return "$1"
}
readonly -f __agentcore_report
"""
)

# In a string in dollar quotes, each byte that is not simply itself.
_QUOTED: Final = {byte: f"\\x{byte:02x}" for byte in (*range(32), *range(127, 256))} | {
    0x0A: "\\n",
    0x27: "\\'",
    0x5C: "\\\\",
}
# What fits in a line, not torn apart: a quoted byte is up to four characters.
_PIECE: Final = re.compile(r"(?:\\x..|\\.|[^\\]){1,200}")


def setup_lines(nonce: int) -> bytes:
    """Give what is typed into a new shell; its report says that it is ready."""
    return command_lines(_SETUP, nonce)


def answer_line(nonce: int) -> bytes:
    """Give what is typed when the shell asks to type nothing more. A shell that waits for it no longer does nothing by it."""
    return b"\\builtin : agentcore %d\n" % nonce


def command_lines(command: str, nonce: int, variables: Mapping[str, str] | None = None) -> bytes:
    """Give the lines to type for a command. None is complete before the last, so that it is run whole or not at all.

    Args:
        command: Anything that bash understands, in any number of lines.
        nonce: The number that the report will bear.
        variables: What is in the environment for this command alone, and is as it was after it.
    """
    words = [f"{name}={_quoted(value)}" for name, value in (variables or {}).items()]
    # `eval`, because it takes what can't be understood, or is not complete, without leaving the shell waiting for more. The
    # number is assigned while the words are expanded, which does not change `$?`. `command`, because with `builtin` alone the
    # variables are gone after the first command in the text, and with neither they stay for good where POSIX mode is on.
    # `builtin` before that, because a function may have the name of `command`.
    words.append(f'\\builtin command eval -- "${{0:$((__agentcore_nonce={nonce})):0}}${{__agentcore_flags-}}"')
    words[-1] += _quoted(command)
    return (" \\\n".join(words) + f"; {_AFTER % nonce}\n").encode()


def _quoted(text: str) -> str:
    """Quote text for bash, in pieces on lines of their own that are one word all the same."""
    pieces = _PIECE.findall(text.encode(errors="replace").decode("latin-1").translate(_QUOTED))
    return "\\\n".join(f"$'{piece}'" for piece in pieces) or "''"
