"""The text that is typed into the shell, and the reports that come back from it through its terminal.

Everything is typed, as a person would, because a terminal is all that a workspace gives. So each line is short enough for a
terminal to take (1,024 bytes on macOS, 4,096 on Linux), and all of it is printable.

A report marks the end of a command's output. It comes through the terminal, after the last byte of output, and carries a
number that was made for this one command and that only the shell knows. So no output can look like a report, however it got
there, and no output is taken for one. Reports that are out of date or forged are sequences that are ignored. Before the report
comes a question with the same number: to type nothing more into the command, and to acknowledge that.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple, final

WIDTH: Final = 200
HEIGHT: Final = 50

START: Final = "stty -echo; exec bash --noprofile --norc --noediting +H -i"
"""Interactive, so that Ctrl-C ends a command and not the shell; without history expansion, because a model never means it."""

RESTORE_TTY: Final = r'\builtin : "$(\command stty sane -echo 2>/dev/null)"'
"""Restores the terminal to the state that commands expect.

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
# all of it), PROMPT_COMMAND is the next thing it runs. The second one finds no number, and is silent.
# - It leaves `$?` as it was, and neither `set -e` nor an ERR trap sees it: it stands before `&&`.
# - What the user's `set -x` and traps show of it goes to /dev/null; `set -a`, `-v` and `-x` rest until the next command begins.
# - What is typed goes into no history, since values of secrets may be typed.
# - It asks DIRSTACK, since PWD is a variable that any command may set; PWD where a command has removed that.
# - It uses no name that a command may have made a function or read-only: builtins are asked for as such, and a function in
#   the place of `builtin` itself is removed. The line that is typed says the number again, should its variable be gone.
# - What was typed too late for the program that was to read it is read here, or it would be the next command: the writer is
#   asked to type nothing more, and all is read until the acknowledgement comes. A writer that is there never takes two seconds. A signal
#   can have all of it begin again when the report is out already: it must not ask then, or it would read the next command away.
# - The prompts show nothing, but are not empty: an empty PS1 is a sign of a shell that is not interactive.
_AFTER: Final = r'{ __agentcore_report "$?" "%s" && \:; } >/dev/null 2>&1'
_SETUP: Final = (
    r"""
unset TMOUT MAILCHECK
set +o history
history -c
__agentcore_report() {
  \unset -f builtin
  case ${2:-0} in 0) \builtin return "$1" ;; esac
  \builtin local "__agentcore_set=${-//[!avx]/}" __agentcore_python= __agentcore_line= __agentcore_misses= \
    __agentcore_cwd="${DIRSTACK[0]-$PWD}"
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
  \builtin printf '\033]7717;%s;%s\037%s\037%s\007\n' "$2" "$1${-//[!e]/}" \
    "${__agentcore_cwd//[[:cntrl:]]/?}" "${__agentcore_python//[[:cntrl:]]/?}" >/dev/tty
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
    """Return the lines to type into a new shell. Its report means that it is ready."""
    return command_lines(_SETUP, nonce)


def ack_line(nonce: int) -> bytes:
    """Return the acknowledgement that nothing more is typed. It does nothing in a shell that no longer waits for it."""
    return b"\\builtin : agentcore %d\n" % nonce


def command_lines(command: str, nonce: int, variables: Mapping[str, str] | None = None) -> bytes:
    """Return the lines to type for a command. Only the last one completes it, so bash runs all of it or nothing.

    The report will have this number. The variables are in the environment for this command alone.
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


# The number that is chosen is a parameter of an operating system command that no terminal knows.
_BEGINNING: Final = "\x1b]7717;{};"
_REST: Final = re.compile(rb"(\d+)(e*)\x1f([^\x07\x1f]*)\x1f([^\x07\x1f]*)\x07(\r*)\n")
# A command can find out its own number, and print it. What comes behind that for so long, and is no report, is output.
_LONGEST_REST: Final = 65536


class Report(NamedTuple):
    """The shell's report that it is ready for another command."""

    exit_code: int
    errexit: bool
    """True if `set -e` is on."""
    cwd: str
    python: str
    """The path of the Python that a command would find; empty where there is none."""
    cooked: bool
    """True if the terminal still ends lines as terminals do; otherwise a program left it in another state."""


def new_nonce() -> int:
    """Make a number that can't be guessed, of the size that bash can count with."""
    return (1 << 62) | secrets.randbits(62)


@final
class ReportParser:
    """Looks for the report of one command at a time."""

    def __init__(self) -> None:
        self._mark: bytes | None = None
        self._question = b""
        self._held = b""
        self.nonce = 0
        """The number that is looked for, or was the last time."""
        self.asked = 0
        """How often the shell has asked, and was not answered yet; for who answers to set back."""

    def expect(self, nonce: int) -> None:
        """Look for the report with this number from now on."""
        self.nonce, self.asked = nonce, 0
        self._mark = _BEGINNING.format(nonce).encode()
        self._question = self._mark[:-1] + b"\x07"

    def feed(self, data: bytes) -> tuple[bytes, Report | None, bytes]:
        """Take the next piece; give the output before the report, the report if it is there, and what follows it."""
        if self._mark is None:
            return data, None, b""
        data, self._held = self._held + data, b""
        if self._question in data:
            self.asked += data.count(self._question)
            data = data.replace(self._question, b"")
        # What may be the beginning of a question may be that of a report, too.
        at = data.find(self._mark)
        if at < 0:
            at = beginning_at_end(data, self._mark)
            self._held = data[at:]
            return data[:at], None, b""
        while (rest := _REST.match(data, at + len(self._mark))) is None:
            later = data.find(self._mark, at + 1)
            if later < 0:
                if len(data) - at > _LONGEST_REST:
                    at = beginning_at_end(data, self._mark)
                self._held = data[at:]
                return data[:at], None, b""
            at = later
        self._mark = None
        code, errexit, cwd, python, cooked = rest.groups()
        cwd, python = cwd.decode(errors="replace"), python.decode(errors="replace")
        report = Report(int(code), bool(errexit), cwd, python, bool(cooked))
        return data[:at], report, data[rest.end() :]


def beginning_at_end(data: bytes, mark: bytes) -> int:
    """Return the place from which the data may be the beginning of the mark, or its length if there is none."""
    start = data.find(mark[:1], max(0, len(data) - len(mark) + 1))
    while start >= 0 and not mark.startswith(data[start:]):
        start = data.find(mark[:1], start + 1)
    return start if start >= 0 else len(data)


# How a terminal shows the end of a line, by the state it is in.
_LINE_ENDS: Final = (b"\r\n", b"\n", b"^J")


@final
class Echo:
    """Removes one typed text from a stream, wherever it begins."""

    def __init__(self, typed: bytes) -> None:
        """Look for lines that end in line feeds; the first has to be one that stands nowhere else."""
        self._lines = typed.removesuffix(b"\n").split(b"\n")[::-1]
        self._held = b""
        self.found = False

    def feed(self, data: bytes) -> bytes:
        """Take the next piece and give it without the echo."""
        if not self._lines:
            return data
        data, self._held = self._held + data, b""
        before = b""
        if not self.found:
            first = self._lines[-1]
            at = data.find(first)
            if at < 0:
                at = beginning_at_end(data, first)
                self._held = data[at:]
                return data[:at]
            self.found = True
            before, data = data[:at], data[at:]
        while self._lines:
            line = self._lines[-1]
            if not data.startswith(line):
                break
            rest = data[len(line) :]
            end = next((end for end in _LINE_ENDS if rest.startswith(end)), None)
            if end is None:
                break
            data = rest[len(end) :]
            self._lines.pop()
        if self._lines and any((self._lines[-1] + end).startswith(data) for end in _LINE_ENDS):
            self._held = data
            return before
        # All is removed, or something else was written in between: then what is left of it can't be told from that.
        self._lines.clear()
        return before + data
