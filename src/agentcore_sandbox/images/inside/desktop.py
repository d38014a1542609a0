"""A desktop with a browser, on port 6080 of the box: an X server that is shown by VNC, and a web page that shows that."""

import os
import subprocess
import sys
import time
from pathlib import Path

DISPLAY = 1
PORT = 6080
VNC_PORT = 5901
SECONDS = 30.0


def main() -> None:
    """Start all of it; end with the first that ends."""
    # Ports of the box alone; who may look is decided outside.
    started = [
        subprocess.Popen(
            [
                "Xtigervnc",
                f":{DISPLAY}",
                "-rfbport",
                str(VNC_PORT),
                "-localhost",
                "-SecurityTypes",
                "None",
                "-AlwaysShared",
                "-geometry",
                "1280x800",
                "-nolisten",
                "tcp",
            ]
        )
    ]
    deadline = time.monotonic() + SECONDS
    while not Path(f"/tmp/.X11-unix/X{DISPLAY}").exists():  # noqa: S108 - where X servers listen
        if started[0].poll() is not None or time.monotonic() > deadline:
            sys.exit("The X server did not start.")
        time.sleep(0.05)
    os.environ["DISPLAY"] = f":{DISPLAY}"
    started.append(subprocess.Popen(["openbox"]))
    # Its own sandbox needs namespaces, which a box without privileges has not; and the box is one.
    browser = [
        "chromium",
        "--no-sandbox",
        "--test-type",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--start-maximized",
    ]
    subprocess.Popen([*browser, "about:blank"])
    started.append(
        subprocess.Popen(["websockify", "--web", "/usr/share/novnc", f"127.0.0.1:{PORT}", f"127.0.0.1:{VNC_PORT}"])
    )
    while all(each.poll() is None for each in started):
        time.sleep(0.5)
    sys.exit("A part of the desktop has ended.")


if __name__ == "__main__":
    main()
