"""Folders with all that makes copying folders hard, made and ruined by a seed."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
from pathlib import Path

NAMES = [
    b"a", b"b.txt", b"with space", b"new\nline", b"\xff\xfe\x80", b"-n", b'quo"te', b"back\\slash", b"tab\t", b"*", b"git~1",
    "grün".encode(), b".hidden", b".gitattributes", b"README", b"lib", b"src", b"x" * 200,
]  # fmt: skip
CONTENTS = [
    b"",
    b"one\r\ntwo\r\n",
    b"one\ntwo",
    b"\0\1\2\xff" * 50,
    b"$Id$ $Id: x $\n",
    "ünï".encode("utf-16"),
    b"z" * 70_000,
]
MODES = [0o644, 0o600, 0o755, 0o700, 0o444, 0o640, 0o664]
RULES = b"*.ign\nthrown/\n"
Seen = dict[bytes, tuple[str, int, bytes]]


def make_tree(root: Path, chance: random.Random) -> None:
    """Make a tree that ignores `*.ign`, with repositories in it and rules for git that would change contents."""
    (root / ".gitignore").write_bytes(RULES)
    (root / ".gitattributes").write_bytes(b"* text eol=crlf filter=evil ident working-tree-encoding=UTF-16\n")
    if chance.random() < 0.7:
        _repository(root)
    folders = [os.fsencode(root)]
    for _ in range(chance.randint(3, 25)):
        path = os.path.join(chance.choice(folders), chance.choice(NAMES))
        if os.path.lexists(path):
            continue
        kind = chance.random()
        if kind < 0.35:
            os.mkdir(path)
            os.chmod(path, chance.choice([0o755, 0o700, 0o775]))
            folders.append(path)
            if chance.random() < 0.2:
                _repository(Path(os.fsdecode(path)))
        elif kind < 0.5:
            os.symlink(chance.choice([b"/etc/hostname", b"nowhere", b"..", b"a", b"\xff"]), path)
        else:
            _write(path, chance)
    for folder in chance.sample(folders, min(len(folders), 3)):
        Path(os.fsdecode(folder), "kept").write_bytes(b"kept")  # git leaves out a folder of ignored files alone
        Path(os.fsdecode(folder), "secret.ign").write_bytes(b"ignored")


def ruin_tree(root: Path, outside: Path, chance: random.Random) -> None:
    """Delete, change, replace and add, also behind links that lead out of the tree."""
    for _ in range(chance.randint(1, 20)):
        paths = [path for path in _paths(root) if not path.endswith(b".ign")]
        path = chance.choice(paths) if paths else os.path.join(os.fsencode(root), b"new")
        if not os.path.lexists(path):
            continue
        real_folder = os.path.isdir(path) and not os.path.islink(path)
        kind = chance.random()
        if kind < 0.3 or (os.path.islink(path) and kind < 0.7):
            shutil.rmtree(path) if real_folder else os.unlink(path)
            if chance.random() < 0.3:
                os.symlink(os.fsencode(outside), path)
            elif chance.random() < 0.3:
                os.mkdir(path)
                _write(os.path.join(path, chance.choice(NAMES)), chance)
        elif kind < 0.5:
            os.chmod(path, chance.choice([0o700, 0o755, 0o711] if real_folder else MODES))
        elif real_folder:
            _write(os.path.join(path, b"new " + chance.choice(NAMES)[:100]), chance)
            os.makedirs(os.path.join(path, b"deep", b"er"), exist_ok=True)
        elif not os.path.islink(path):
            os.chmod(path, 0o600)
            _write(path, chance)


def seen_in(root: Path, *, ignored: bool = False) -> Seen:
    """Return what is in a tree, but what is in a `.git`: the files that are ignored, or all others."""
    seen: Seen = {}
    for path in _paths(root):
        status = os.lstat(path)
        if path.endswith(b".ign") is not ignored:
            continue
        name = path[len(os.fsencode(root)) :]
        if stat.S_ISLNK(status.st_mode):
            seen[name] = ("link", 0, os.readlink(path))
        elif stat.S_ISDIR(status.st_mode):
            seen[name] = ("folder", stat.S_IMODE(status.st_mode), b"")
        else:
            seen[name] = ("file", stat.S_IMODE(status.st_mode), Path(os.fsdecode(path)).read_bytes())
    return seen


def _paths(root: Path) -> list[bytes]:
    paths: list[bytes] = []
    for folder, folders, files in os.walk(os.fsencode(root)):
        folders[:] = sorted(name for name in folders if name != b".git")
        paths += [os.path.join(folder, name) for name in (*folders, *sorted(files)) if name != b".git"]
    return paths


def _repository(folder: Path) -> None:
    environment = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=environment)
    (folder / ".gitignore").write_bytes(RULES)  # those of the project end at a repository in it
    (folder / ".git" / "config").write_text(
        '[core]\n\trepositoryformatversion = 0\n\tautocrlf = true\n\tfsmonitor = "touch fsmonitor-ran; false"\n'
        '[filter "evil"]\n\tclean = "touch filter-ran; echo evil"\n\tsmudge = "touch filter-ran; echo evil"\n\trequired = true\n'
    )


def _write(path: bytes, chance: random.Random) -> None:
    if os.path.isdir(path):
        return
    Path(os.fsdecode(path)).write_bytes(chance.choice(CONTENTS))
    os.chmod(path, chance.choice(MODES))
