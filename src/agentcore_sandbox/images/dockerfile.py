"""The Dockerfile of an image with parts, and the archive that is sent to the engine with it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Final

from agentcore_sandbox.docker.options import DEFAULT_USER, OWN
from agentcore_sandbox.images.parts import FOLDER, PARTS
from agentcore_sandbox.views.view import LABEL, format_views

VERSION_MARK: Final = "agentcore-version"
"""Begins each line by which a build tells the version of a package: mark, name, version."""
NO_APT: Final = "agentcore: the base has no apt-get"

_INSIDE: Final = Path(__file__).parent / "inside"
_APT: Final = (
    "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends {packages}"
    " && rm -rf /var/lib/apt/lists/*"
)
# Shells show the user's name, and some programs refuse to run without one.
_NAMED: Final = f"getent passwd {DEFAULT_USER[0]} >/dev/null || echo 'agent:x:{DEFAULT_USER[0]}:{DEFAULT_USER[1]}::{OWN}/home:/bin/sh' >> /etc/passwd"
_CERTIFIED: Final = "$([ -s /certificates.pem ] && echo PIP_CERT=/certificates.pem npm_config_cafile=/certificates.pem NODE_EXTRA_CA_CERTS=/certificates.pem)"


def format_dockerfile(base: str, parts: list[str]) -> str:
    """Return the Dockerfile.

    Args:
        base: The id of the base.
        parts: Names of parts.
    """
    lines = [
        f"FROM {base} AS checked",
        "USER root",
        f"RUN command -v apt-get >/dev/null || {{ echo '{NO_APT}'; exit 1; }}",
    ]
    for name in parts:
        if stage := PARTS[name].stage:
            install = _APT.format(packages="").replace(" && rm -rf /var/lib/apt/lists/*", "")
            lines += [f"FROM {base} AS {name}", "USER root"]
            lines.append(stage.format(apt=install.strip(), certified=f"env {_CERTIFIED}"))
    packages = sorted({package for name in parts for package in PARTS[name].packages})
    lines += [
        "FROM checked",
        # Debian's own where there is no other: the helper and the programs of views are Python.
        f"RUN [ -x /usr/bin/python3 ] || {{ {_APT.format(packages='python3')}; }}",
    ]
    if packages:
        lines.append(f"RUN {_APT.format(packages=' '.join(packages))}")
    lines.append(f"RUN {_NAMED}")
    lines += [f"COPY {file} {FOLDER}/{file}" for name in parts for file in PARTS[name].files]
    lines += [f"COPY --from={name} {FOLDER} {FOLDER}" for name in parts if PARTS[name].stage]
    views = format_views({name: PARTS[name].view for name in parts})
    escaped = views.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    lines.append(f'LABEL {LABEL}="{escaped}"')
    # An argument that is another one each time, because the output of a step from the cache is not shown.
    shown = " ".join(["python3", *packages])
    lines += [
        "ARG AGENTCORE_BUILD",
        f"RUN : $AGENTCORE_BUILD; dpkg-query -W -f='{VERSION_MARK} ${{Package}} ${{Version}}\\n' {shown} 2>/dev/null || true",
    ]
    return "\n".join(lines) + "\n"


def pack_context(dockerfile: str, parts: list[str], certificates: bytes) -> bytes:
    """Return the archive for the engine: the Dockerfile, programs of ours, and certificates that pip and npm have to know."""
    files = {"Dockerfile": dockerfile.encode(), "certificates.pem": certificates}
    for name in parts:
        files |= {file: (_INSIDE / file).read_bytes() for file in PARTS[name].files}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file, content in sorted(files.items()):
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
