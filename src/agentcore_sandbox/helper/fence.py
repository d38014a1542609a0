"""`Fence`: whose helpers may work in a box, and the end of what those before them started.

An owner is a conversation, and its epoch counts how often it was opened. A helper works for as many owners as its workspace is shared by.
It is overtaken for an owner of which there is a later epoch. Whoever comes later ends a helper that is overtaken for any of its owners,
as nobody can tell for which it started what. A helper that could not be ended does nothing more once it is overtaken for all of them.
Those of other owners are spared.

The file `epoch` in the state folder has the latest epoch of each owner, and a record of each helper. It is only a promise between
helpers: a command of the same user may write to it, and harms nothing but its own box by that.
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
# Of those that came last; who is forgotten is a stranger then.
_MAX_OWNERS = 1000


class Fence:
    """The fence of one box, as one of its helpers sees it."""

    def __init__(self, state: str, box: str, whole: bool, children: Children) -> None:
        # Of each owner that this helper works for, or was asked to.
        self._epochs: dict[str, int] = {}
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
        """Refuse if a later opening has come since, for all owners."""
        if not self._epochs:
            return
        try:
            found = os.stat(self._path)
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:
            seen = self._seen
        if seen != self._seen:
            self._overtaken = _late(self._epochs, self._read()["owners"]) == self._epochs.keys()
            self._seen = seen
        if self._overtaken:
            raise Refused("A later opening has taken over this box, so that nothing is done here any more.", "fenced")

    def join(self, epochs: dict[str, int]) -> Steps[int]:
        """Record this helper, and end what is left of those before it. Returns how many processes that were.

        Args:
            epochs: By owner; those of which there is a later one are left out.

        Raises:
            Refused: There is a later one of each, or something could not be ended.
        """
        lock = yield from self._locked()
        try:
            return (yield from self._take_over(epochs))
        finally:
            os.close(lock)

    def raise_to(self, owner: str, epoch: int) -> Steps[int]:
        """End everything that older openings of an owner started. Returns how many processes that were.

        Raises:
            Refused: There is a later opening, or something could not be ended.
        """
        if epoch < self._epochs.get(owner, -1):
            raise _refusal(epoch, self._epochs[owner])
        return (yield from self.join({owner: epoch}))

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

    def _take_over(self, epochs: dict[str, int]) -> Steps[int]:
        content = self._read()
        owners = content["owners"]
        self._epochs.update(epochs)
        self._seen = None
        late = _late(epochs, owners)
        if late and late == epochs.keys():
            owner = min(late)
            raise _refusal(epochs[owner], owners[owner])
        taken = {owner: epoch for owner, epoch in epochs.items() if owner not in late}
        rises = bool(taken) and (not content["clean"] or any(taken[each] > owners.get(each, -1) for each in taken))
        for owner in taken:
            owners.pop(owner, None)
        owners.update(taken)
        others = [each for each in content["helpers"] if not self._is_own(each)]
        # Another opening of the same epochs is about to end what it started, if it lives.
        older = [each for each in others if not _is_alive(each) or _late(each["owners"], owners)]
        still = {each: self._epochs[each] for each in self._epochs.keys() - _late(self._epochs, owners)}
        own = {"pid": self._own, "start": self._start, "mark": self._children.mark, "owners": still}
        latest = dict(list(owners.items())[-_MAX_OWNERS:])
        content = {"owners": latest, "helpers": [*others, own], "clean": not rises}
        # Before anything is ended: whoever is interrupted in that leaves it to the next, and older helpers do nothing from now on.
        self._write(content)
        ended: set[int] = set()
        if rises or older:
            left = [each for each in others if each not in older]
            ended = yield from self._end(older, left, everything=rises)
            content["helpers"] = [*left, own]
            content["clean"] = True
            self._write(content)
        return len(ended)

    def _end(self, older: list[dict[str, Any]], spared: list[dict[str, Any]], everything: bool) -> Steps[set[int]]:
        marks = {each["mark"].encode() for each in older}
        pids = [each["pid"] for each in older if _is_alive(each)]
        if everything:
            marks.add(self._box)
        spared_marks = {each["mark"].encode() for each in spared} | {self._children.mark.encode()}
        spared_pids = [each["pid"] for each in spared]
        ended: set[int] = set()
        beyond: set[int] = set()

        def targets(seen: dict[int, Process]) -> set[int]:
            found = self._strangers(seen)
            # Kernel threads are to be seen: then it is the machine that is looked at, whatever was claimed.
            if not (everything and self._whole) or any(each.is_kernel_thread for each in seen.values()):
                found &= descendants(seen, [*pids, *(pid for pid in found if marks & set(seen[pid].marks))])
            found -= descendants(seen, [*spared_pids, *(pid for pid in found if spared_marks & set(seen[pid].marks))])
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
                raise Refused(f"The processes of earlier openings could not be ended: {sorted(left)}.")
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
                raise Refused("Another opening has held the lock of this box for too long.")
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
        empty: dict[str, Any] = {"owners": {}, "helpers": [], "clean": True}
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return empty
        try:
            content: Any = json.loads(os.read(descriptor, _LONGEST_FILE).decode())
            helpers = [each for each in content["helpers"] if _is_record(each)]
            owners = {str(owner): int(epoch) for owner, epoch in content["owners"].items()}
            return {"owners": owners, "helpers": helpers, "clean": bool(content["clean"])}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
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
    return (
        all(isinstance(each, int) for each in numbers)
        and value["pid"] > 1
        and _are_epochs(value.get("owners"))
        and isinstance(value.get("mark"), str)
    )


def _are_epochs(value: Any) -> bool:
    return is_object(value) and all(isinstance(each, int) for each in value.values())


def _late(epochs: dict[str, int], owners: dict[str, int]) -> set[str]:
    """Return those of whom there is a later epoch."""
    return {owner for owner, epoch in epochs.items() if epoch < owners.get(owner, -1)}


def _is_alive(record: dict[str, Any]) -> bool:
    found = read_process(record["pid"])
    return found is not None and found.start == record["start"]


def _refusal(epoch: int, latest: int) -> Refused:
    return Refused(
        f"Opening {epoch} of this conversation is not its latest: opening {latest} has taken the box over. Nothing was done here.",
        "fenced",
    )
