"""Run the benchmarks, or those that are named: `python -m benchmarks [step append ...] [--tiny] [--folder F] [--out F]`.

Each runs in a process of its own and prints one JSON object, on a line here; a table for people goes to stderr. With
`--out`, the lines go to a file too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPTS = {path.stem: path for path in sorted(Path(__file__).parent.glob("[!_]*.py"))}


def main() -> int:
    """Run them; say by the exit code whether all of them ran. A bar that is missed is a figure, not a failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one or more of: {', '.join(SCRIPTS)}")
    parser.add_argument("--tiny", action="store_true", help="measure next to nothing: for checking the scripts")
    parser.add_argument("--folder", help="where files are written (default: the system's temporary folder)")
    parser.add_argument("--out", type=Path, help="a file for the JSON lines")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SCRIPTS):
        parser.error(f"there is no benchmark called {', '.join(sorted(unknown))}: there are {', '.join(SCRIPTS)}")
    options = [*(["--tiny"] if given.tiny else []), *(["--folder", given.folder] if given.folder else [])]
    lines: list[str] = []
    failed: list[str] = []
    for name in given.names or SCRIPTS:
        ended = subprocess.run(
            [sys.executable, SCRIPTS[name], *options], stdout=subprocess.PIPE, text=True, check=False
        )
        if ended.returncode:
            failed.append(name)
            continue
        lines.append(ended.stdout.strip())
        print(lines[-1], flush=True)
        print(table(json.loads(lines[-1])), file=sys.stderr, flush=True)
    if given.out is not None:
        given.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if failed:
        print(f"Did not run to its end: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def table(said: dict[str, Any]) -> str:
    """Show what a script said."""
    bars = {bar["figure"]: bar for bar in said["bars"]}
    lines = [f"\n{said['benchmark']}: {said['question']}"]
    for name, figure in said["figures"].items():
        bar = bars.get(name)
        held = "" if bar is None else f"   bar {bar['at_most']:g}: {'met' if bar['met'] else 'MISSED'}"
        lines.append(f"  {name:<58} {figure}{held}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
