"""The start of the helper: the command that runs in the box, and the sources that are sent to it first.

Nothing has to be installed in the box but Python 3.7 or later, and nothing is written to its disk.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

GREETING: Final = b"agentcore-helper 1\n"
"""The line that a helper writes first. Whatever comes instead is for people to read."""

MODULES: Final = (
    "errors",
    "loop",
    "kernel",
    "stream",
    "channel",
    "files",
    "table",
    "children",
    "launch",
    "tree",
    "process",
    "trees",
    "tunnels",
    "private",
    "fence",
    "main",
)
"""The modules of the helper, each behind those that it imports."""

_PACKAGE: Final = "agentcore_sandbox.helper"

# Understood by Python 2 as well, to say that it is too old.
_START: Final = """\
import os, sys
if sys.version_info < (3, 7):
    sys.stdout.write("The Python in the box is %d.%d; the helper needs 3.7 or later.\\n" % sys.version_info[:2])
    sys.exit(127)
def take(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit(1)
        data += more
    return data
exec(take(int(take(8))))
"""

# -I: no variables, no user's folder, nothing of the folder it starts in. -S: no site-packages. UTF-8 whatever the locale is.
_SCRIPT: Final = """\
command -v python3 >/dev/null 2>&1 && exec python3 -I -S -u -X utf8 -c "$0"
command -v python >/dev/null 2>&1 && { python -I -c "" 2>/dev/null && exec python -I -S -u -X utf8 -c "$0"; exec python -c "$0"; }
echo "no python"
exit 127
"""

BOOT_COMMAND: Final = ("sh", "-c", _SCRIPT, _START)
"""The command that runs in the box: it waits for `payload` on its standard input, and becomes the helper."""

# As if they were installed, so that their imports are those that are written there.
_LOADER: Final = """\
import sys, types
def load(name, source):
    module = types.ModuleType(name)
    module.__path__ = []
    sys.modules[name] = module
    exec(compile(source, "<agentcore helper: %s>" % name.rpartition(".")[2], "exec"), module.__dict__)
    above, _, own = name.rpartition(".")
    if above:
        setattr(sys.modules[above], own, module)
for name, source in SOURCES:
    load(name, source)
sys.modules["agentcore_sandbox.helper.main"].main()
"""


@cache
def payload() -> bytes:
    """Return what to send to the command first: the length of a program in eight digits, and the program."""
    folder = files(_PACKAGE)
    sources = [("agentcore_sandbox", ""), (_PACKAGE, "")]
    sources += [(f"{_PACKAGE}.{name}", folder.joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    program = f"SOURCES = {sources!a}\n{_LOADER}".encode("ascii")
    return b"%08d" % len(program) + program
