"""A program that saves the files of a folder in a git store outside of it, and brings them back. It runs in the workspace.

It is not imported: `checkpoints.py` passes its source to the workspace's Python (3.7 or later, without our packages). It is git's
objects and index that are used, and nothing that a project or a user configures for git: no filter, no attribute, no hook.
What a `.gitignore` leaves out is neither saved nor touched, and no `.git` is.
"""

import json
import os
import stat
import subprocess
import sys
from collections import Counter
from typing import Any, Iterable, Iterator  # noqa: UP035 of an old Python

NO_GIT = 3
"""The exit code where there is no git."""
NO_CHECKPOINT = 4
"""The exit code where the store has no such checkpoint."""

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
            self.env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = '"%s"' % path
        for name in ("objects", "refs", "info"):
            os.makedirs(os.path.join(self.store, name), exist_ok=True)
        for name, data in (("config", _CONFIG), ("info/attributes", _ATTRIBUTES), ("HEAD", b"ref: refs/heads/none\n")):
            with open(os.path.join(self.store, name), "wb") as file:
                file.write(data)
        try:
            # Of a program that was killed. There is one at a time: whoever holds the conversation's log.
            os.unlink(os.path.join(self.store, "index.lock"))
        except FileNotFoundError:
            pass

    def __call__(self, *words: str, data: bytes = b"", **env: str) -> bytes:
        ran = subprocess.run(
            ["git"] + list(words), input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(self.env, **env)
        )
        if ran.returncode:
            raise RuntimeError("git %s: %s" % (words[0], ran.stderr.decode("utf-8", "replace").strip()))
        return ran.stdout

    def ignored(self, base: bytes) -> set[bytes]:
        """Return what git would not look at below a repository's folder, or below ours; whole folders where it can."""
        top = find_top(base)
        words = ["ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard"]
        exclude = os.path.join(top, b".git/info/exclude")
        if os.path.isfile(exclude):
            words.append("--exclude-from=" + os.fsdecode(exclude))
        found = self._list(words, base, top)
        if (
            b"./" in found or b"" in found
        ):  # our folder is itself left out by a repository around it: it counts by itself
            found = self._list(words, base, os.path.abspath(base or b"."))
        return {base + path.rstrip(b"/") for path in found}

    def _list(self, words: list[str], base: bytes, top: bytes) -> list[bytes]:
        env = dict(self.env, GIT_WORK_TREE=os.fsdecode(top), GIT_INDEX_FILE=os.path.join(self.store, "no index"))
        ran = subprocess.run(["git"] + words, cwd=base or b".", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if ran.returncode:
            raise RuntimeError("git ls-files: " + ran.stderr.decode("utf-8", "replace").strip())
        return ran.stdout.split(b"\0")[:-1]

    def tracked(self, base: bytes) -> list[bytes]:
        """Return what the project's own repository keeps, ignored or not; nothing where it cannot be read."""
        words = ["git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "ls-files", "-z", "--cached"]
        ran = subprocess.run(words, cwd=base or b".", env=self.clean, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return [base + path for path in ran.stdout.split(b"\0")[:-1]] if ran.returncode == 0 else []


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

    def __init__(self, git: Git, limit: int, keep: set[bytes] = frozenset(), open_up: bool = False) -> None:  # type: ignore[assignment]
        self.files: dict[bytes, os.stat_result] = {}
        self.folders: dict[bytes, int] = {}
        self.left_out: dict[bytes, str] = {}
        self._git, self._limit, self._keep, self._open_up = git, limit, keep, open_up
        left: list[tuple[bytes, set[bytes]]] = [(b"", self._enter(b""))]
        repositories = [b""]
        while left:  # and no recursion: folders may be nested deeper than Python's stack goes
            folder, ignored = left.pop()
            for name, status in self._look(folder):
                path = folder + name
                if path in ignored or path in keep:
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    self._add(path, name, status)
                elif is_repository(path):
                    repositories.append(path + b"/")
                    self.folders[path] = stat.S_IMODE(status.st_mode)
                    left.append((path + b"/", self._enter(path + b"/")))
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
                        self._add(path, os.path.basename(path), status)
                        for above in ancestors(path):
                            self.folders.setdefault(above, stat.S_IMODE(os.lstat(above).st_mode))

    def _enter(self, base: bytes) -> set[bytes]:
        return self._git.ignored(base)

    def _look(self, folder: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
        path = folder or b"."
        try:
            if self._open_up and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                os.chmod(path, 0o700)
            names = sorted(os.listdir(path))
        except OSError as error:
            self.left_out[folder.rstrip(b"/")] = "cannot be read (%s)" % error.strerror
            return
        for name in names:
            if name == b".git":
                continue
            try:
                yield name, os.lstat(folder + name)
            except OSError:
                continue  # it is gone

    def _add(self, path: bytes, name: bytes, status: os.stat_result) -> None:
        link = stat.S_ISLNK(status.st_mode)
        if not link and not stat.S_ISREG(status.st_mode):
            return  # a pipe, a socket, a device
        lowered = [part.lower() for part in path.split(b"/")]
        if b".git" in lowered or (link and lowered[-1] == b".gitmodules"):
            self.left_out[path] = "git refuses the name"
        elif not link and status.st_size > self._limit:
            self.left_out[path] = "larger than %d MB" % (self._limit // 1000000)
        elif not link and not os.access(path, os.R_OK):
            self.left_out[path] = "cannot be read"
        else:
            self.files[path] = status


def is_rules(path: bytes) -> bool:
    """Return whether a file says what is ignored."""
    return os.path.basename(path) == b".gitignore"


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
        except RuntimeError as error:
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
                try:
                    os.rmdir(folder)
                except OSError:
                    pass  # something is left in it that is not ours to remove
        self._write([path for path, entry in self.wanted.items() if index.get(path) != entry])
        for folder in sorted(self.folders, key=len):
            self._attempt(folder, lambda folder=folder: self._make_folder(folder))
        self._set_modes()
        if self._contents is not None:
            self._contents.stdin.close()  # type: ignore[union-attr]
            self._contents.wait()
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

    def _attempt(self, path: bytes, do: Any) -> bool:
        try:
            do()
        except OSError as error:
            self.failed.append("%s: %s" % (os.fsdecode(path), error.strerror))
            return False
        return True

    def _remove(self, paths: list[bytes]) -> None:
        for path in paths:
            self.removed += self._attempt(path, lambda path=path: os.unlink(path))

    def _write(self, paths: list[bytes]) -> None:
        for path in paths:
            self.written += self._attempt(path, lambda path=path: self._put(path))

    def _make_folder(self, folder: bytes) -> None:
        """Make a folder, and those above it; a file or a link that is in the way goes. Nothing is written through a link."""
        for path in list(ancestors(folder))[::-1] + [folder]:
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
        batch = self._contents
        batch.stdin.write(digest + b"\n")  # type: ignore[union-attr]
        batch.stdin.flush()  # type: ignore[union-attr]
        head = batch.stdout.readline().split()  # type: ignore[union-attr]
        if len(head) != 3:
            raise OSError(5, "its content is missing from the checkpoint")
        left = int(head[2])
        while left:
            piece = batch.stdout.read(min(left, 1 << 20))  # type: ignore[union-attr]
            left -= len(piece)
            yield piece
        batch.stdout.read(1)  # type: ignore[union-attr]

    def _mode_of(self, path: bytes, mode: bytes) -> int:
        return self.modes.get(path, self.defaults[mode.decode()])

    def _set_modes(self) -> None:
        for path, (mode, _) in self.wanted.items():
            if mode != b"120000":
                self._attempt(path, lambda path=path, mode=mode: set_mode(path, self._mode_of(path, mode)))
        for folder in sorted(self.folders, key=len, reverse=True):
            mode = self.modes.get(folder, self.defaults["folder"])
            self._attempt(folder, lambda folder=folder, mode=mode: set_mode(folder, mode))


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
    except RuntimeError as error:
        sys.stderr.write(str(error))
        sys.exit(1)
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main()
