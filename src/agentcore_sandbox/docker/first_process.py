"""The first process of a container: it collects what ends, and ends the container when nobody has been there for a while.

It runs inside, with the standard library of any Python from 3.7 on; its text travels as an argument. It never forks, so it lives on where no
process can be started any more.
"""

import os
import signal
import sys
import time


def is_used() -> bool:
    """Return True if something that came from outside is there: a helper, or a shell. Only they have no parent inside."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[1:2] == [b"0"] and fields[:1] != [b"Z"]:
                return True
    return False


def watch(seconds: float) -> None:
    """Return when nobody has been there for so many seconds."""
    last = time.monotonic()
    while True:
        time.sleep(min(max(last + seconds - time.monotonic(), 0.01), 10))
        try:
            used = is_used()
        except OSError:
            used = True
        if used:
            last = time.monotonic()
        elif time.monotonic() - last >= seconds:
            return


if __name__ == "__main__":
    # The kernel then collects the processes that their parents left behind.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    watch(float(sys.argv[1]))
    sys.stdout.write("ended: nobody was here for " + sys.argv[1] + " s\n")
