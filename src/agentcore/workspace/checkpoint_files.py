"""The files of a folder as a checkpoint sees them: what git would not ignore. A part of `checkpoint_program.py`.

It runs in the workspace, on its Python (3.7 or later, without our packages). It is git's objects and index that are used, and
nothing that a project or a user configures for git: no filter, no attribute, no hook.
"""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import time
from contextlib import suppress
from typing import Collection, Iterator  # noqa: UP035 of an old Python

_CONFIG = b"""[core]
	repositoryFormatVersion = 0
	bare = false
	fileMode = true
	symlinks = true
	ignoreCase = false
	precomposeUnicode = false
	protectHFS = false
	protectNTFS = false
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedCache = false
	fsyncMethod = batch
	looseCompression = 1
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
[gc]
	auto = 0
"""
# It goes before each .gitattributes: files are kept byte for byte.
_ATTRIBUTES = b"* -text -filter -ident !eol !working-tree-encoding\n"


# Git waits for whoever writes to a pipe that has the name of one of its files.
_GIT_SECONDS = 120
_LOOK_AFTER_SECONDS = 1
_LOCK_SECONDS = 300


class Refused(Exception):
    """It cannot be done; the message is the end of a sentence that says so."""


class GitFailed(Refused):
    """Git could not do what it was asked."""

    def __init__(self, word: str, errors: bytes) -> None:
        super().__init__("git {}: {}".format(word, errors.decode("utf-8", "replace").strip()))


class Git:
    """Git on a store of ours, with this folder as its files, or some folder above it."""

    def __init__(self, store: str, others: str | None) -> None:
        self.store = os.path.abspath(store)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        clean.update(
            LC_ALL="C", HOME=self.store, XDG_CONFIG_HOME=self.store, GIT_CONFIG_NOSYSTEM="1", GIT_ATTR_NOSYSTEM="1"
        )
        clean.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_OPTIONAL_LOCKS="0", GIT_NO_REPLACE_OBJECTS="1")
        self.clean = clean
        self.env = dict(clean, GIT_DIR=self.store, GIT_INDEX_FILE=os.path.join(self.store, "index"))
        self.env["GIT_WORK_TREE"] = os.getcwd()
        if others is not None and os.path.abspath(others) != self.store:
            path = os.path.join(os.path.abspath(others), "objects").replace("\\", "\\\\").replace('"', '\\"')
            self.env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = '"' + path + '"'
        os.makedirs(self.store, exist_ok=True)
        self.lock = _lock(os.path.join(self.store, "lock"))
        for name in ("objects", "refs", "info"):
            os.makedirs(os.path.join(self.store, name), exist_ok=True)
        for name, data in (("config", _CONFIG), ("info/attributes", _ATTRIBUTES), ("HEAD", b"ref: refs/heads/none\n")):
            with open(os.path.join(self.store, name), "wb") as file:
                file.write(data)
        with suppress(FileNotFoundError):
            # Of a program that was killed, as the lock is ours.
            os.unlink(os.path.join(self.store, "index.lock"))

    def __call__(self, *words: str, data: bytes = b"") -> bytes:
        ran = subprocess.run(["git", *words], input=data, capture_output=True, env=self.env, check=False)
        if ran.returncode:
            raise GitFailed(words[0], ran.stderr)
        return ran.stdout

    def ignored(self, base: bytes) -> set[bytes]:
        """Return what git would not look at below a repository's folder, or below ours; whole folders where it can."""
        top = find_top(base)
        words = ["ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard"]
        exclude = os.path.join(top, b".git/info/exclude")
        if os.path.isfile(exclude):
            words.append("--exclude-from=" + os.fsdecode(exclude))
        found = self._list(words, base, top)
        if b"./" in found:  # a repository around our folder leaves it out itself: then it counts by itself
            found = self._list(words, base, os.path.abspath(base or b"."))
        return {base + path.rstrip(b"/") for path in found}

    def _list(self, words: list[str], base: bytes, top: bytes) -> list[bytes]:
        env = dict(self.env, GIT_WORK_TREE=os.fsdecode(top), GIT_INDEX_FILE=os.path.join(self.store, "no index"))
        git = subprocess.Popen(
            ["git", *words],
            cwd=base or b".",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with git:
            try:
                out, errors = self._communicate(git, base, top)
            except BaseException:
                git.kill()
                raise
        if git.returncode:
            raise GitFailed("ls-files", errors)
        return out.split(b"\0")[:-1]

    def _communicate(self, git: subprocess.Popen[bytes], base: bytes, top: bytes) -> tuple[bytes, bytes]:
        """Return git's output. Where it is slow, make sure that it does not wait for a pipe that is called `.gitignore`."""
        with suppress(subprocess.TimeoutExpired):
            return git.communicate(timeout=_LOOK_AFTER_SECONDS)
        above = os.path.abspath(base or b".")
        waiting = [*find_waiting_rules(base or b"."), *_find_waiting_repositories(base or b".")]
        while above != top and above != os.path.dirname(above):
            above = os.path.dirname(above)
            waiting += filter(is_waiting, [os.path.join(above, b".gitignore")])
        if waiting:
            raise Refused(f"{os.fsdecode(os.path.normpath(waiting[0]))} is not a regular file. Remove it")
        try:
            return git.communicate(timeout=_GIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise GitFailed("ls-files", b"it did not end") from None

    def tracked(self, base: bytes) -> list[bytes]:
        """Return what the project's own repository keeps, ignored or not; nothing where it cannot be read."""
        words = ["git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "ls-files", "-z", "--cached"]
        if any(is_waiting(os.path.join(base, b".git", name)) for name in (b"HEAD", b"config", b"index")):
            return []
        try:
            ran = subprocess.run(
                words,
                cwd=base or b".",
                env=self.clean,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_GIT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return []
        return [base + path for path in ran.stdout.split(b"\0")[:-1]] if ran.returncode == 0 else []


def _lock(path: str) -> int:
    """Return a locked file: one program at a time works on a store. It is unlocked when the program ends, killed or not."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                raise Refused("another program has worked on its checkpoints for minutes. Try it later") from None
            time.sleep(0.02)


def find_top(base: bytes) -> bytes:
    """Return the nearest repository's folder, from this one upward; where there is none, this one."""
    here = folder = os.path.abspath(base or b".")
    while not is_repository(folder):
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above
    return folder


def is_repository(folder: bytes) -> bool:
    """Return whether git takes a folder for one with a repository of its own."""
    mark = os.path.join(folder, b".git")
    return os.path.isfile(mark) or os.path.exists(os.path.join(mark, b"HEAD"))


class Files:
    """The files, links and folders below this folder, as far as they are not ignored."""

    def __init__(self, git: Git, limit: int, keep: Collection[bytes] = (), *, open_up: bool = False) -> None:
        self.files: dict[bytes, os.stat_result] = {}
        self.folders: dict[bytes, int] = {}
        self.left_out: dict[bytes, str] = {}
        self._limit, self._open_up = limit, open_up
        left: list[tuple[bytes, set[bytes]]] = [(b"", git.ignored(b""))]
        repositories = [b""]
        while left:  # and no recursion: folders may be nested deeper than Python's stack goes
            folder, ignored = left.pop()
            for name, status in self._look(folder):
                path = folder + name
                if path in ignored or path in keep:
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    self._add(path, status)
                elif is_repository(path):
                    repositories.append(path + b"/")
                    self.folders[path] = stat.S_IMODE(status.st_mode)
                    left.append((path + b"/", git.ignored(path + b"/")))
                else:
                    self.folders[path] = stat.S_IMODE(status.st_mode)
                    left.append((path + b"/", ignored))
        for base in repositories:
            for path in git.tracked(base):
                if path not in self.files and path not in keep and in_real_folders(path):
                    try:
                        status = os.lstat(path)
                    except OSError:
                        continue
                    if not stat.S_ISDIR(status.st_mode):
                        self._add(path, status)
                        for above in ancestors(path):
                            self.folders.setdefault(above, stat.S_IMODE(os.lstat(above).st_mode))

    def _look(self, folder: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
        path = folder or b"."
        try:
            if self._open_up and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                os.chmod(path, 0o700)
            names = sorted(os.listdir(path))
        except OSError as error:
            self.left_out[folder.rstrip(b"/")] = f"cannot be read ({error.strerror})"
            return
        for name in names:
            if name == b".git":
                continue
            try:
                yield name, os.lstat(folder + name)
            except OSError:
                continue  # it is gone

    def _add(self, path: bytes, status: os.stat_result) -> None:
        link = stat.S_ISLNK(status.st_mode)
        if not link and not stat.S_ISREG(status.st_mode):
            return  # a pipe, a socket, a device
        lowered = [part.lower() for part in path.split(b"/")]
        if b".git" in lowered or (link and lowered[-1] == b".gitmodules"):
            self.left_out[path] = "git refuses the name"
        elif not link and status.st_size > self._limit:
            self.left_out[path] = f"larger than {self._limit // 1000000} MB"
        elif not link and not os.access(path, os.R_OK):
            self.left_out[path] = "cannot be read"
        else:
            self.files[path] = status


def is_rules(path: bytes) -> bool:
    """Return whether a file says what is ignored."""
    return os.path.basename(path) == b".gitignore"


def find_waiting_rules(base: bytes = b".") -> Iterator[bytes]:
    """Return what has the name of a file of rules and is a pipe or the like: git would wait there for whoever writes to it."""
    for folder, folders, names in os.walk(base):
        folders[:] = [name for name in folders if name != b".git"]
        yield from filter(is_waiting, [os.path.join(folder, name) for name in names if is_rules(name)])


def _find_waiting_repositories(base: bytes) -> Iterator[bytes]:
    """Return the pipes and the like that git reads when it wonders whether a folder is a repository."""
    for folder, folders, _ in os.walk(base):
        if b".git" in folders:
            folders.remove(b".git")
            yield from filter(is_waiting, [os.path.join(folder, b".git", name) for name in (b"HEAD", b"commondir")])


def is_waiting(path: bytes) -> bool:
    """Return whether it is a pipe, a socket or a device."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


def ancestors(path: bytes) -> Iterator[bytes]:
    """Return the folders that a path lies in, the nearest first."""
    while b"/" in path:
        path = path.rsplit(b"/", 1)[0]
        yield path


def in_real_folders(path: bytes) -> bool:
    """Return whether no link and no file is on the way to a path."""
    try:
        return all(stat.S_ISDIR(os.lstat(above).st_mode) for above in ancestors(path))
    except OSError:
        return False
