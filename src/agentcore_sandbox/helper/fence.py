"""`Fence`: which owner's helper may work in a box, and the end of what those before it started.

The file `epoch` in the state folder has the number of the latest owner, and a record of each helper. It is only a promise between helpers:
a command of the same user may write to it, and harms nothing but its own box by that.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time

from agentcore_sandbox.helper.children import CLOSE_SECONDS, GRACE_SECONDS, Children, send_signal
from agentcore_sandbox.helper.errors import Refused, path_errors
from agentcore_sandbox.helper.stream import is_object
from agentcore_sandbox.helper.table import Process, ancestors, descendants, read_process, read_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agentcore_sandbox.helper.loop import Steps

_PAUSE = 0.02
_LOCK_SECONDS = 12.0
_LONGEST_FILE = 1024 * 1024
_INIT = 1


class Fence:
    """The fence of one box, as one of its helpers sees it."""

    def __init__(self, state: str, box: str, whole: bool, children: Children) -> None:
        self.epoch: int | None = None
        self._path = os.path.join(state, "epoch")
        self._box = box.encode()
        self._whole = whole
        self._children = children
        self._own = os.getpid()
        self._seen: object = None
        self._overtaken = False
        own = read_process(self._own)
        self._start = own.start if own is not None else 0

    def check(self) -> None:
        """Refuse if a later owner has come since."""
        if self.epoch is None and not self._overtaken:
            return
        if not self._overtaken:
            try:
                found = os.stat(self._path)
                seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            except OSError:
                return
            if seen != self._seen:
                self._overtaken = self.epoch is not None and self._read()["epoch"] > self.epoch
                self._seen = seen
        if self._overtaken:
            raise Refused("A later owner has taken over this box, so that nothing is done here any more.", "fenced")

    def join(self, epoch: int | None) -> Steps[int]:
        """Record this helper, and end what is left of those before it; see `raise_to`. Returns how many processes that were."""
        lock = yield from self._locked()
        try:
            return (yield from self._take_over(epoch))
        finally:
            os.close(lock)

    def raise_to(self, epoch: int) -> Steps[int]:
        """End everything that older owners started. Returns how many processes that were.

        Raises:
            Refused: There is a later owner, or something could not be ended.
        """
        if self.epoch is not None and epoch < self.epoch:
            raise _late(epoch, self.epoch)
        return (yield from self.join(epoch))

    def leave(self) -> None:
        """Take this helper's record out, as nothing of it is left."""
        try:
            lock = self._open_lock()
        except OSError:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            content = self._read()
            content["helpers"] = [each for each in content["helpers"] if not self._is_own(each)]
            self._write(content)
        except OSError:
            pass  # the next one finds that this one is gone
        finally:
            os.close(lock)

    def _take_over(self, epoch: int | None) -> Steps[int]:
        content = self._read()
        latest = content["epoch"]
        if epoch is not None and epoch < latest:
            self._overtaken = True
            raise _late(epoch, latest)
        others = [each for each in content["helpers"] if not self._is_own(each)]
        # Of this owner's own ones only those that are dead: another one that lives is about to end what it started.
        older = [
            each
            for each in others
            if not _is_alive(each) or (epoch is not None and (each["epoch"] is None or each["epoch"] < epoch))
        ]
        rises = epoch is not None and (epoch > latest or not content["clean"])
        own = {"pid": self._own, "start": self._start, "epoch": epoch, "mark": self._children.mark}
        content = {"epoch": latest if epoch is None else epoch, "helpers": [*others, own], "clean": not rises}
        # Before anything is ended: whoever is interrupted in that leaves it to the next, and older helpers do nothing from now on.
        self._write(content)
        ended: set[int] = set()
        if rises or older:
            ended = yield from self._end(older, everything=rises)
            content["helpers"] = [*(each for each in others if each not in older), own]
            content["clean"] = True
            self._write(content)
        self.epoch = epoch if epoch is not None else self.epoch
        self._seen = None
        return len(ended)

    def _end(self, older: list[dict[str, Any]], everything: bool) -> Steps[set[int]]:
        marks = {each["mark"].encode() for each in older if isinstance(each["mark"], str)}
        pids = [each["pid"] for each in older if _is_alive(each)]
        if everything:
            marks.add(self._box)
        ended: set[int] = set()
        beyond: set[int] = set()

        def targets(seen: dict[int, Process]) -> set[int]:
            found = self._strangers(seen)
            # Kernel threads are to be seen: then it is the machine that is looked at, whatever was claimed.
            if not (everything and self._whole) or any(each.is_kernel_thread for each in seen.values()):
                found &= descendants(seen, [*pids, *(pid for pid in found if marks & set(seen[pid].marks))])
            return {pid for pid in found if not seen[pid].ended} - beyond

        deadline = time.monotonic() + CLOSE_SECONDS
        late = time.monotonic() + GRACE_SECONDS
        asked: set[int] = set()
        none = 0
        while none < 2:
            seen = read_processes(self._strangers)
            left = targets(seen)
            for pid in left:
                is_late = time.monotonic() >= late
                if (is_late or pid not in asked) and not send_signal(
                    pid, signal.SIGKILL if is_late else signal.SIGTERM
                ):
                    beyond.add(pid)  # another user's
                elif pid not in asked:
                    asked.add(pid)
                    send_signal(pid, signal.SIGCONT)
            ended |= left - beyond
            none = 0 if left - beyond else none + 1
            if not ended and not any(each.uncertain for each in seen.values()):
                break
            if left and time.monotonic() >= deadline:
                raise Refused(f"Older owners' processes could not be ended: {sorted(left)}.")
            yield _PAUSE
        return ended

    def _strangers(self, seen: dict[int, Process]) -> set[int]:
        """Find the processes that are not this helper's, nor around it."""
        return seen.keys() - descendants(seen, [self._own]) - ancestors(seen, self._own) - {_INIT}

    # The file.

    def _locked(self) -> Steps[int]:
        with path_errors(self._path):
            lock = self._open_lock()
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                pass
            except BaseException:
                os.close(lock)
                raise
            if time.monotonic() >= deadline:
                os.close(lock)
                raise Refused("Another owner has held the lock of this box for too long.")
            try:
                yield _PAUSE
            except BaseException:
                os.close(lock)
                raise

    def _open_lock(self) -> int:
        # A file of its own, as the other one is replaced.
        return os.open(
            f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600
        )

    def _read(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"epoch": -1, "helpers": [], "clean": True}
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return empty
        try:
            content: Any = json.loads(os.read(descriptor, _LONGEST_FILE).decode())
            helpers = [each for each in content["helpers"] if _is_record(each)]
            return {"epoch": int(content["epoch"]), "helpers": helpers, "clean": bool(content["clean"])}
        except (OSError, ValueError, KeyError, TypeError):
            # Some command wrote to it. Whatever it hid is found by its marks.
            empty["clean"] = False
            return empty
        finally:
            os.close(descriptor)

    def _write(self, content: dict[str, Any]) -> None:
        new = f"{self._path}.{self._own}"
        with path_errors(self._path):
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(content).encode())
            finally:
                os.close(descriptor)
            os.replace(new, self._path)

    def _is_own(self, record: dict[str, Any]) -> bool:
        return record["pid"] == self._own and record["start"] == self._start


def _is_record(value: Any) -> bool:
    if not is_object(value):
        return False
    numbers = (value.get("pid"), value.get("start"))
    epoch = value.get("epoch")
    return (
        all(isinstance(each, int) for each in numbers)
        and value["pid"] > 1
        and (epoch is None or isinstance(epoch, int))
        and isinstance(value.get("mark"), str)
    )


def _is_alive(record: dict[str, Any]) -> bool:
    found = read_process(record["pid"])
    return found is not None and found.start == record["start"]


def _late(epoch: int, latest: int) -> Refused:
    return Refused(
        f"Owner {epoch} of this box is not its latest: owner {latest} has taken over. Nothing was done here.", "fenced"
    )
