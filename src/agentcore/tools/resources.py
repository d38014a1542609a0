"""Resources: the things that an action uses, so that actions which do not share any can run at once."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import posixpath
from collections.abc import Sequence
from itertools import product
from typing import Literal, Self

from agentcore._value import Value

Access = Literal["read", "write"]

# Files outside the workspace's folder are under it too: a command can reach them as well.
_WORKSPACE = "workspace"
_NAMED = "named"


class Resource(Value):
    """Something that an action reads or writes. Resources nest: a file is a part of its folder and of the workspace."""

    path: tuple[str, ...]
    """From the whole to the part."""
    mode: Access

    @classmethod
    def workspace(cls, mode: Access) -> Self:
        """Return the whole workspace, every file in it included."""
        return cls(path=(_WORKSPACE,), mode=mode)

    @classmethod
    def file(cls, path: str, mode: Access, *, root: str) -> Self:
        """Return a file, or a folder with all that is in it. A relative path counts from `root`, the workspace's folder.

        Only the letters of the path are looked at: two names of one file, by a symbolic link, are two resources.

        Raises:
            ValueError: `root` is not absolute.
        """
        if not root.startswith("/"):
            raise ValueError(f"The root {root!r} of a workspace has to be an absolute path.")
        normal = posixpath.normpath(posixpath.join(root, path))
        return cls(path=(_WORKSPACE, *(part for part in normal.split("/") if part)), mode=mode)

    @classmethod
    def named(cls, name: str, mode: Access) -> Self:
        """Return a resource that is not a file: a browser, an account, a device. The workspace does not include it."""
        return cls(path=(_NAMED, name), mode=mode)

    @property
    def file_path(self) -> str | None:
        """The absolute path of a file or folder; None of the whole workspace, and of what is not a file."""
        whole, *parts = self.path
        return f"/{'/'.join(parts)}" if whole == _WORKSPACE and parts else None

    def conflicts_with(self, other: "Resource") -> bool:
        """True if one is the other or a part of it, and at least one of the two is written."""
        if self.mode == "read" and other.mode == "read":
            return False
        shared = min(len(self.path), len(other.path))
        return self.path[:shared] == other.path[:shared]


def conflicts(one: Sequence[Resource], other: Sequence[Resource]) -> bool:
    """True if two actions that touch these resources have to run one after the other."""
    return any(mine.conflicts_with(theirs) for mine, theirs in product(one, other))
