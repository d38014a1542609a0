"""A program that saves the files of a folder in a git store outside of it, and brings them back. It runs in the workspace.

It is not imported: `checkpoints.py` passes its source to the workspace's Python (3.7 or later, without our packages), with that
of `checkpoint_files.py`. What a `.gitignore` leaves out is neither saved nor touched, and no `.git` is.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Iterable, Iterator, cast  # noqa: UP035 of an old Python

from agentcore.workspace.checkpoint_files import (
    Files,
    Git,
    GitFailed,
    Refused,
    ancestors,
    find_waiting_rules,
    in_real_folders,
    is_rules,
)

NO_GIT = 3
"""The exit code where there is no git."""
NO_CHECKPOINT = 4
"""The exit code where the store has no such checkpoint."""


def joined(paths: Iterable[bytes]) -> bytes:
    """Return paths as git reads them from its input."""
    return b"".join(path + b"\0" for path in paths)


def take_in(git: Git, found: Files) -> dict[bytes, tuple[bytes, bytes]]:
    """Bring git's index up to date with what was found, and return the mode and the hash of each file."""
    cached = git("ls-files", "-z", "--cached").split(b"\0")[:-1]
    git(
        "update-index",
        "-z",
        "--force-remove",
        "--stdin",
        data=joined(path for path in cached if path not in found.files),
    )
    git("update-index", "-z", "--add", "--remove", "--replace", "--stdin", data=joined(sorted(found.files)))
    listed = git("ls-files", "-z", "--stage").split(b"\0")[:-1]
    entries = (line.split(b"\t", 1) for line in listed)
    return {path: (words.split()[0], words.split()[1]) for words, path in entries}


def save(asked: dict[str, Any]) -> dict[str, Any]:
    """Save the files; return the checkpoint's id, which is the same for the same files."""
    git = Git(asked["store"], None)
    found = Files(git, asked["limit"])
    index = take_in(git, found)
    tree = git("write-tree").strip()
    needed = {above for path in index for above in ancestors(path)}
    usual = {
        kind: Counter(stat.S_IMODE(found.files[path].st_mode) for path, (mode, _) in index.items() if mode == kind)
        for kind in (b"100644", b"100755")
    }
    defaults = {kind.decode(): (modes.most_common(1) or [(0o644, 0)])[0][0] for kind, modes in usual.items()}
    defaults["folder"] = (Counter(found.folders.values()).most_common(1) or [(0o755, 0)])[0][0]
    modes = {
        path.decode("latin-1"): stat.S_IMODE(found.files[path].st_mode)
        for path, (mode, _) in index.items()
        if mode != b"120000" and stat.S_IMODE(found.files[path].st_mode) != defaults[mode.decode()]
    }
    modes.update((p.decode("latin-1"), mode) for p, mode in found.folders.items() if mode != defaults["folder"])
    beside = {
        "defaults": defaults,
        "modes": modes,
        "empty": [path.decode("latin-1") for path in sorted(found.folders) if path not in needed],
        "left_out": sorted(path.decode("latin-1") for path in found.left_out),
    }
    blob = git("hash-object", "-w", "--stdin", data=json.dumps(beside, sort_keys=True).encode()).strip()
    top = git("mktree", "-z", data=b"040000 tree %s\tfiles\0" % tree + b"100644 blob %s\tbeside\0" % blob).strip()
    left_out = [[os.fsdecode(path), why] for path, why in sorted(found.left_out.items())]
    return {"id": top.decode(), "files": len(index), "left_out": left_out}


class Restoring:
    """The way back to a checkpoint. What fails is noted, and the rest is done."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.git = git = Git(asked["store"], asked["from"])
        name = asked["id"]
        try:
            beside = json.loads(git("cat-file", "blob", name + ":beside").decode())
            listed = git("ls-tree", "-r", "-z", "--full-tree", name + ":files").split(b"\0")[:-1]
        except GitFailed as error:
            sys.stderr.write(str(error))
            sys.exit(NO_CHECKPOINT)
        self.wanted: dict[bytes, tuple[bytes, bytes]] = {}
        for line in listed:
            words, path = line.split(b"\t", 1)
            mode, _, digest = words.split()
            self.wanted[path] = (mode, digest)
        self.modes = {path.encode("latin-1"): mode for path, mode in beside["modes"].items()}
        self.defaults = beside["defaults"]
        self.folders = {above for path in self.wanted for above in ancestors(path)}
        self.folders.update(path.encode("latin-1") for path in beside["empty"])
        self.keep = {path.encode("latin-1") for path in beside["left_out"]}
        self.limit = asked["limit"]
        self.failed: list[str] = []
        self._aside: set[bytes] = set()
        self.written = self.removed = 0
        self._contents: subprocess.Popen[bytes] | None = None

    def run(self) -> dict[str, Any]:
        """Do it; return what was done."""
        self._remove(list(find_waiting_rules()))
        present = self._scan()
        # What was ignored when the files were saved is not in the checkpoint, and stays: so the rules come first.
        self._remove([path for path in present.files if is_rules(path) and path not in self.wanted])
        self._write([path for path in self.wanted if is_rules(path) and self._differs(path)])
        after = self._scan()
        index = take_in(self.git, after)
        ours = set(present.files).union(present.folders)
        ours.update(
            path for path in list(after.files) + list(after.folders) if self._aside.intersection(ancestors(path))
        )
        ours.update(self._aside)
        self._remove([path for path in index if path not in self.wanted and path in ours])
        for folder in sorted(after.folders, key=len, reverse=True):
            if folder not in self.folders and folder in ours:
                with suppress(OSError):  # something may be left in it that is not ours to remove
                    os.rmdir(folder)
        self._write([path for path, entry in self.wanted.items() if index.get(path) != entry])
        for folder in sorted(self.folders, key=len):
            self._attempt(folder, partial(self._make_folder, folder))
        self._set_modes()
        if self._contents is not None:
            self._contents.communicate()
        left = [[os.fsdecode(path), why] for path, why in sorted(after.left_out.items())]
        return {"written": self.written, "removed": self.removed, "failed": self.failed, "left_out": left}

    def _scan(self) -> Files:
        return Files(self.git, self.limit, self.keep, open_up=True)

    def _differs(self, path: bytes) -> bool:
        """Return whether a file of rules is not what it was; a folder in its place is moved aside, as what came later."""
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                aside = os.path.join(os.path.dirname(path), b".agentcore-%s" % os.urandom(8).hex().encode())
                os.rename(path, aside)
                self._aside.add(aside)
            elif stat.S_ISREG(status.st_mode) and self.wanted[path][0] != b"120000" and in_real_folders(path):
                with open(path, "rb") as file:
                    return file.read() != b"".join(self._read(self.wanted[path][1]))
        except OSError:
            pass
        return True

    def _attempt(self, path: bytes, do: Callable[[], object]) -> bool:
        try:
            do()
        except OSError as error:
            self.failed.append(f"{os.fsdecode(path)}: {error.strerror}")
            return False
        return True

    def _remove(self, paths: list[bytes]) -> None:
        for path in paths:
            self.removed += self._attempt(path, partial(os.unlink, path))

    def _write(self, paths: list[bytes]) -> None:
        for path in paths:
            self.written += self._attempt(path, partial(self._put, path))

    def _make_folder(self, folder: bytes) -> None:
        """Make a folder, and those above it; a file or a link that is in the way goes. Nothing is written through a link."""
        for path in [*list(ancestors(folder))[::-1], folder]:
            try:
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    continue
                os.unlink(path)
            except FileNotFoundError:
                pass
            os.mkdir(path, 0o700)
            self.modes.setdefault(path, self.defaults["folder"])

    def _put(self, path: bytes) -> None:
        above = os.path.dirname(path)
        if above:
            self._make_folder(above)
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        mode, digest = self.wanted[path]
        temporary = os.path.join(above, b".agentcore-%s" % os.urandom(8).hex().encode())
        try:
            if mode == b"120000":
                os.symlink(b"".join(self._read(digest)), temporary)
            else:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "wb") as file:
                    file.writelines(self._read(digest))
                    os.fchmod(descriptor, self._mode_of(path, mode))
            os.replace(temporary, path)
        except OSError:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            raise

    def _read(self, digest: bytes) -> Iterator[bytes]:
        if self._contents is None:
            self._contents = subprocess.Popen(
                ["git", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.git.env
            )
        asking, answers = cast("Any", self._contents.stdin), cast("Any", self._contents.stdout)
        asking.write(digest + b"\n")
        asking.flush()
        head = answers.readline().split()
        if len(head) != 3:
            raise OSError(5, "its content is missing from the checkpoint")
        left = int(head[2])
        while left:
            piece = answers.read(min(left, 1 << 20))
            if not piece:
                raise OSError(5, "git ended")
            left -= len(piece)
            yield piece
        answers.read(1)

    def _mode_of(self, path: bytes, mode: bytes) -> int:
        return self.modes.get(path, self.defaults[mode.decode()])

    def _set_modes(self) -> None:
        for path, (mode, _) in self.wanted.items():
            if mode != b"120000":
                self._attempt(path, partial(set_mode, path, self._mode_of(path, mode)))
        for folder in sorted(self.folders, key=len, reverse=True):
            mode = self.modes.get(folder, self.defaults["folder"])
            self._attempt(folder, partial(set_mode, folder, mode))


def set_mode(path: bytes, mode: int) -> None:
    """Set the permissions of a file or a folder where they differ; a link that took its place stays as it is."""
    status = os.lstat(path)
    if not stat.S_ISLNK(status.st_mode) and stat.S_IMODE(status.st_mode) != mode:
        os.chmod(path, mode)


def main() -> None:
    """Read what is asked as JSON, and write what was done as JSON."""
    asked = json.loads(sys.stdin.buffer.read().decode())
    os.umask(0o077)
    try:
        done = save(asked) if asked["do"] == "save" else Restoring(asked).run()
    except FileNotFoundError as error:
        if error.filename not in ("git", b"git"):
            raise
        sys.exit(NO_GIT)
    except Refused as error:
        sys.stderr.write(str(error))
        sys.exit(1)
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main()
