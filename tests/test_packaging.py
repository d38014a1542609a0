"""What is shipped: that it is whole, and that it says what it needs."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PACKAGES = ("agentcore", "agentcore_tools", "agentcore_sandbox", "agentcore_serve")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def requirements(*extras: str) -> Iterator[Requirement]:
    """Give the requirements of the project and of extras, extras of extras included."""
    for line in [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            yield from requirements(*requirement.extras)
        else:
            yield requirement


def pins() -> dict[str, Version]:
    """Read constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    named = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, _, version in named}


@cache
def tracked_texts() -> list[tuple[str, str]]:
    """Give path and text of each file in version control."""
    if shutil.which("git") is None:
        pytest.skip("needs git: install git")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository, so nobody can say which files are tracked")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    files = [(name, ROOT / name) for name in listed.split("\0") if name and (ROOT / name).is_file()]
    contents = [(name, path.read_bytes()) for name, path in files]
    return [(name, content.decode("utf-8")) for name, content in contents if b"\0" not in content]


@cache
def distributions_of_modules() -> Mapping[str, list[str]]:
    """Give the distributions that a module of this name can come from."""
    return importlib.metadata.packages_distributions()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(package: str) -> None:
    module = importlib.import_module(package)
    assert (Path(module.__path__[0]) / "py.typed").is_file()


def test_the_version_is_the_same_wherever_it_is_said() -> None:
    agentcore = importlib.import_module("agentcore")
    assert agentcore.__version__ == importlib.metadata.version(PROJECT["name"])


def test_each_kind_of_sandbox_can_be_made_again_where_the_package_is_installed() -> None:
    declared = PROJECT["entry-points"]["agentcore.workspaces"]
    assert set(declared) == {"bubblewrap", "docker"}
    for kind, value in declared.items():
        assert callable(importlib.metadata.EntryPoint(kind, value, "agentcore.workspaces").load())


def test_every_constraint_is_a_plain_pin() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if line and not re.fullmatch(r"#.*|[A-Za-z0-9][\w.-]*==[0-9][\w.!+]*", line)]
    assert odd == []


def test_every_dependency_is_pinned_to_a_version_that_it_allows() -> None:
    pinned = pins()
    wrong = [
        str(requirement)
        for requirement in requirements(*EXTRAS)
        if (version := pinned.get(canonicalize_name(requirement.name))) is None or version not in requirement.specifier
    ]
    assert wrong == []


def test_what_the_dependencies_need_is_pinned_too() -> None:
    reached: set[str] = set()
    waiting = [(requirement, "") for requirement in requirements("all", "test")]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        if name in reached:
            continue
        reached.add(name)
        needs = [Requirement(line) for line in importlib.metadata.requires(name) or []]
        waiting += [(need, each) for need in needs for each in ("", *requirement.extras)]
    assert sorted(reached - pins().keys()) == []


HELPERS = [path for folder in ("tests", "tests/mcp/servers", "scripts") for path in (ROOT / folder).glob("*.py")]
OURS = {*PACKAGES, "tests", *(path.stem for path in HELPERS)}
"""The packages, and what tests share with each other."""


def third_party_imports(files: Iterable[Path]) -> dict[str, set[str]]:
    """Give the top-level modules that files import and that are not the project's own, each with the files."""
    found: dict[str, set[str]] = {}
    for path in files:
        for name in imports_in(path) - sys.stdlib_module_names - OURS:
            found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


@cache
def imports_in(path: Path) -> set[str]:
    """Give the top-level modules that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                found.update(alias.name.partition(".")[0] for alias in node.names)
            case ast.ImportFrom(module=str() as name):
                found.add(name.partition(".")[0])
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str() as name), *_],
            ):
                found.add(name.partition(".")[0])
            case _:
                pass
    return found


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("src", ["all"]),
        # The doubles may need what tests need: who uses them has tests.
        ("src/agentcore/testing", ["all", "test"]),
        # What of test-serve is missing is skipped, but by `nox -s serve`.
        ("tests", ["all", "test", "test-serve"]),
    ],
)
def test_what_is_imported_is_declared(folder: str, extras: list[str]) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    if folder == "src":
        files = [path for path in files if not path.is_relative_to(ROOT / "src" / "agentcore" / "testing")]
    declared = {canonicalize_name(requirement.name) for requirement in requirements(*extras)}
    declared.add(canonicalize_name("pydantic-core"))  # a part of pydantic, which asks for exactly one version of it
    distributions = distributions_of_modules()
    undeclared = {
        module: places
        for module, places in third_party_imports(files).items()
        if declared.isdisjoint(canonicalize_name(name) for name in distributions.get(module, [module]))
    }
    assert undeclared == {}


def test_all_brings_only_what_is_used() -> None:
    used = third_party_imports((ROOT / "src").rglob("*.py"))
    provided = {canonicalize_name(name) for module in used for name in distributions_of_modules().get(module, [module])}
    # A program that is started where a search is; and what litellm imports at every call.
    provided |= {"ripgrep", "mcp"}
    plain = {canonicalize_name(each.name) for each in requirements()}
    brought = {canonicalize_name(each.name) for each in requirements("all")}
    assert sorted(brought - plain - provided) == []


# Spelt with a gap, so that this file does not hold what it looks for.
_REGISTRIES = ["py pi.org", "python hosted.org", "registry. npmjs", "--index -url", "--extra -index"]
_MACHINES = [r"/ro ot\b", r"/ho me/(?!me\b|user\b)\w", r"/Us ers/\w", r"/wo rk\b", r"/tm p/w\b"]


@pytest.mark.parametrize("spelt", _REGISTRIES)
def test_no_file_names_a_package_registry(spelt: str) -> None:
    registry = spelt.replace(" ", "")
    assert [name for name, text in tracked_texts() if registry in text] == []


@pytest.mark.parametrize("spelt", _MACHINES)
def test_no_file_names_a_place_on_somebodys_machine(spelt: str) -> None:
    pattern = spelt.replace(" ", "")
    # A path starts where no word, dot or slash goes on into it: "src/work" and "https://x.org/home/a" are none.
    assert [name for name, text in tracked_texts() if re.search(rf"(?<![\w./~-]){pattern}", text)] == []
