"""Named attempts to harm a box from inside: what runs in it may end or fill it, and nothing of that is felt anywhere else.

`{state}` is the folder for what tools keep aside, `{outside}` a folder of the machine. What gets further than it may makes a file `escaped`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Harm(NamedTuple):
    """One way to do harm, and what is left of it."""

    name: str
    script: str
    """For sh, in the project's folder."""
    stopped: str
    """For the documentation: what bounds it."""


_BEGIN = "python3 - <<'END'\nimport os, signal, struct, time\n"

_FORGE: Final = """
forged = b"".join(
    struct.pack(">BII", kind, channel, len(data)) + data
    for kind, data in ((1, b"{}"), (5, b"x"), (10, b'{"id":0,"pid":1}'), (11, b"{}"), (13, b'{"code":0}'))
    for channel in (0, 1, 3, 5, 7)
)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for number in range(10):
        try:
            file = os.open("/proc/%s/fd/%d" % (pid, number), os.O_WRONLY | os.O_NONBLOCK)
            if int(pid) not in (os.getpid(), os.getppid()):
                os.write(file, forged)
        except OSError:
            pass
END"""

_REPLACE: Final = """
mkdir -p ~/bin ~/.local/lib
printf '#!/bin/sh\\ntouch {project}/escaped\\n' >python3
chmod +x python3; cp python3 python; cp python3 sh; cp python3 ~/bin/python3
for folder in . ~ $(python3 -c 'import site; print(site.getusersitepackages())'); do
  mkdir -p $folder
  for module in json os socket sitecustomize usercustomize; do echo "open('{project}/escaped', 'w')" >$folder/$module.py; done
done
for file in ~/.profile ~/.bashrc ~/.bash_profile ~/.shinit; do echo 'touch {project}/escaped' >$file; done
kill -9 $PPID; sleep 1000"""

_STATE: Final = """
rm -rf {state}/* {state}/.[!.]*
for name in private epoch lock; do ln -s {outside} {state}/$name; done
mv {state} {state}.old && ln -s {outside} {state}
true"""

_FORKS: Final = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
while True:
    try:
        os.fork()
    except OSError:
        pass
END"""

_MEMORY: Final = """
kept = []
while True:
    kept.append(bytearray(1 << 20))
END"""

_FILES: Final = """
kept = []
try:
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    time.sleep(2)
END"""

HELPER: Final = (
    Harm("frames on every output that can be opened", f"{_BEGIN}{_FORGE}", "commands have none of the stream, and no way to the helper's files"),
    Harm("end the helper", "kill -9 $PPID; sleep 1000", "the next call has a new helper"),
    Harm("stop the helper", "setsid sleep 1234 & kill -STOP $PPID; sleep 1000", "after 15 s of silence it is ended, and the next call has a new one"),
    Harm("end every process", "kill -9 -1; sleep 1000", "the next call has a new helper"),
    Harm("programs and modules in the helper's place", _REPLACE, "it is started by a fixed search path, without the user's modules or start files"),
    Harm("another folder in the place of what tools keep", _STATE, "what is not a folder of the box's user is refused; inside, links lead nowhere else"),
)  # fmt: skip
FORKS: Final = Harm(
    "a fork bomb",
    f"{_BEGIN}{_FORKS}",
    "the limit of processes; all are stopped before they are killed, and they end with the box at the latest",
)
BOMBS: Final = (
    Harm("a memory bomb", f"{_BEGIN}{_MEMORY}", "the limit of memory; the helper is the last to be ended"),
    Harm("an open files bomb", f"{_BEGIN}{_FILES}", "the limit of open files of a process"),
)  # fmt: skip
INODES: Final = Harm(
    "an inode bomb",
    """python3 - <<'END'
import os
os.mkdir("{folder}/many")
try:
    for number in range(10_000_000):
        os.close(os.open("{folder}/many/%d" % number, os.O_CREAT | os.O_WRONLY))
except OSError as error:
    print(error.strerror)
END""",
    "in memory, files count as memory; a box that is full is as good as new when it was left, and in Docker /tmp is bounded by itself",
)
HARMS: Final = (*HELPER, FORKS, *BOMBS, INODES)
