"""The start of a helper in whatever Python a box has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agentcore_sandbox.helper
from agentcore_sandbox.bootstrap import BOOT_COMMAND, GREETING, MODULES, payload
from boxes_raw import HELLO, RawHelper, greeting, open_helper

_FOLDER = Path(agentcore_sandbox.helper.__path__[0])


def _pythons(*versions: str) -> list[str]:
    """Return the Pythons of these versions that this machine has."""
    found = [shutil.which(f"python{version}") for version in versions]
    found += [str(path) for version in versions for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    return [
        path
        for path in found
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    ]


def test_it_is_written_for_python_3_7() -> None:
    vermin = shutil.which("vermin", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert vermin is not None, "pip install vermin"
    result = subprocess.run(
        [vermin, "-t=3.7-", "--no-tips", "--violations", str(_FOLDER)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


def test_every_module_is_sent_behind_those_that_it_imports() -> None:
    assert sorted(MODULES) == sorted(path.stem for path in _FOLDER.glob("*.py") if path.stem != "__init__")
    assert payload()[:8] == b"%08d" % (len(payload()) - 8)


def test_an_old_python_runs_it(tmp_path: Path) -> None:
    pythons = _pythons("3.7", "3.8", "3.9", "3.10")
    if not pythons:
        pytest.skip("needs a Python from 3.7 to 3.10: pyenv install 3.7")
    with open_helper(pythons[0], tmp_path) as helper:
        assert helper.hello["python"].startswith(("3.7", "3.8", "3.9", "3.10"))
        assert helper.ask("process", line="cat; exit 3", data=b"x").result == {"code": 3}
        assert helper.ask("process", line=f"echo {'x' * 200_000}").result == {"code": 0}
        assert helper.ask("write", path="file", data=b"text").result == {}
        assert helper.ask("get_tree", path=".").result == {}
        channel = helper.open("listen", port=0)
        assert helper.answer(channel)["port"] > 0


def _say(tmp_path: Path, **programs: str) -> tuple[str, int]:
    """Boot where only these programs are found, and return what is said instead of a greeting."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, path in programs.items():
        (folder / name).symlink_to(path)
    done = subprocess.run(
        ["/bin/sh", *BOOT_COMMAND[1:]],
        input=payload(),
        capture_output=True,
        env={"PATH": str(folder)},
        cwd="/",
        timeout=30,
        check=False,
    )
    return done.stdout.decode(), done.returncode


def test_a_box_without_python_says_so(tmp_path: Path) -> None:
    assert _say(tmp_path) == ("no python\n", 127)


def test_a_python_that_is_too_old_says_so(tmp_path: Path) -> None:
    pythons = _pythons("3.6")
    if not pythons:
        pytest.skip("needs a Python that is too old: pyenv install 3.6")
    assert _say(tmp_path, python3=pythons[0]) == ("The Python in the box is 3.6; the helper needs 3.7 or later.\n", 127)


def test_python_2_says_so_too(tmp_path: Path) -> None:
    pythons = _pythons("2.7")
    if not pythons:
        pytest.skip("needs Python 2: pyenv install 2.7")
    assert _say(tmp_path, python=pythons[0]) == ("The Python in the box is 2.7; the helper needs 3.7 or later.\n", 127)


def test_a_python_without_the_3_in_its_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    process = subprocess.Popen(
        ["/bin/sh", *BOOT_COMMAND[1:]],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": f"{tmp_path}/bin"},
    )
    with process:
        helper = RawHelper(process)
        helper.send_raw(payload())
        helper.send(HELLO, 0, greeting(tmp_path))
        assert helper.line() == GREETING
        assert "refused" not in helper.frame().value
        helper.end_input()


def test_modules_of_the_folder_it_starts_in_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("print('mine')")
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    process = subprocess.Popen(
        BOOT_COMMAND,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "json.py")},
        cwd=tmp_path,
    )
    with process:
        helper = RawHelper(process)
        helper.send_raw(payload())
        assert helper.line() == GREETING
        helper.end_input()
