"""Text files that others wrote: found in the project, bounded before they are read, cleaned, masked and cut.

Above: project files and memory. Below: the workspace. A file that cannot be shown is a sentence, never an exception.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, final

from agentcore._groups import for_each
from agentcore._text import Mask, remove_invisible
from agentcore.context.source import SourceContext
from agentcore.errors import PathError, WorkspaceError
from agentcore.workspace import Entry, real_paths

MOST_READ: Final = 256 * 1024
"""The most bytes of a file that is read at all."""

_LIMIT: Final = f"files of up to {MOST_READ:,} bytes are read."

_NOT_HIDDEN: Final = frozenset({".agentcore", ".agents", ".claude", ".cursor", ".cursorrules", ".github"})


class Material(NamedTuple):
    """A file as it was read, or why it was not."""

    path: str
    """The absolute path, links followed."""
    text: str | None
    """The text without invisible characters, secrets masked; None where it is left out."""
    problems: tuple[str, ...] = ()
    """Sentences that name the file."""
    is_no_file: bool = False
    """True if there is nothing at the path, or a folder."""


@final
class MaterialReader:
    """Reads files of one project, and no others: neither by a path nor by a link."""

    def __init__(self, context: SourceContext, top: str) -> None:
        self._workspace = context.workspace
        self._mask = context.mask
        self._top = top

    @property
    def root(self) -> str:
        """The workspace's folder, from which paths are shown."""
        return self._workspace.root

    def shown(self, path: str) -> str:
        """Return a path as people and models read it: relative to the root, in one line."""
        return in_one_line(relative(path, self.root))

    def is_inside(self, path: str) -> bool:
        """Return whether a path that has no links in it is in the project."""
        return is_below(path, self._top)

    async def list_folders(self, folders: Sequence[str]) -> dict[str, Mapping[str, Entry]]:
        """Return the entries of each folder by their names, all at once. Nothing is there for what is missing or unreadable.

        What is not a folder has no entries.
        """

        async def entries_of(folder: str) -> Mapping[str, Entry] | None:
            try:
                return {entry.name: entry for entry in await self._workspace.list(folder)}
            except PathError as error:
                return {} if error.reason == "not_a_folder" else None
            except WorkspaceError:
                return None

        listings = await for_each(entries_of, folders)
        return {folder: listing for folder, listing in zip(folders, listings, strict=True) if listing is not None}

    async def read(self, files: Sequence[str], *, known: Mapping[str, Entry], plain: Collection[str]) -> list[Material]:
        """Read files, all at once.

        Args:
            files: Their absolute paths.
            known: Their entries, where they were listed already.
            plain: The folders on the way to which are no links, so that a file of theirs which is none needs no second look.
        """
        leading = [
            path
            for path in files
            if path not in known or known[path].kind == "link" or posixpath.dirname(path) not in plain
        ]
        leads: dict[str, str | PathError] = {}
        borders = (self.root, self._top)
        if leading:
            try:
                found = await real_paths(self._workspace, [*borders, *leading])
            except WorkspaceError as error:
                found = [PathError(path, "failed", str(error)) for path in (*borders, *leading)]
            leads = dict(zip(leading, found[2:], strict=True))
            borders = tuple(each for each in found[:2] if isinstance(each, str))

        async def material_of(path: str) -> Material:
            real = leads.get(path, path)
            if isinstance(real, PathError):
                return self._left_out(path, path, f"{real}")
            if path in leads and (refusal := _refusal(real, borders)) is not None:
                return self._left_out(path, real, refusal)
            entry = known.get(path)
            if entry is not None and entry.kind == "other":
                return self._left_out(path, real, "it is not a file but a device, a pipe or a socket.")
            if entry is not None and entry.kind == "file" and entry.size > MOST_READ:
                return self._left_out(path, real, f"it has {entry.size:,} bytes; {_LIMIT}")
            return await self._read(path, real)

        return await for_each(material_of, files)

    async def _read(self, path: str, real: str) -> Material:
        try:
            data = await self._workspace.read(real, max_bytes=MOST_READ)
        except PathError as error:
            if error.reason in {"missing", "not_a_folder"}:
                return self._left_out(path, real, "there is no such file.", is_no_file=True)
            why = _LIMIT if error.reason == "too_large" else str(error)
            return self._left_out(path, real, why, is_no_file=error.reason == "is_a_folder")
        except WorkspaceError as error:
            return self._left_out(path, real, str(error))
        text = decode(data)
        if text is None:
            return self._left_out(path, real, "it is not UTF-8 text.")
        text, removed = clean(text, self._mask)
        return Material(real, text, (f"{self.shown(path)}: {removed}",) if removed else ())

    def _left_out(self, path: str, real: str, why: str, *, is_no_file: bool = False) -> Material:
        return Material(real, None, (f"{self.shown(path)} is left out: {in_one_line(why)}",), is_no_file)


def decode(data: bytes) -> str | None:
    """Return the text of a file, or None where it is not UTF-8 text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")


def clean(text: str, mask: Mask) -> tuple[str, str | None]:
    """Return the text without what nobody sees and with secrets masked, and a sentence on what was removed."""
    # In this order: a secret that is interrupted by what nobody sees is one when that is gone.
    seen = remove_invisible(text)
    hidden = len(text) - len(seen)
    many = "s were" if hidden > 1 else " was"
    return mask(seen), f"{hidden:,} invisible character{many} removed." if hidden else None


def cut_at_line(text: str, shown: str, where: str) -> str:
    """Return the text, or its beginning where `shown` is not all of it: up to a line's end, with a sentence on the rest."""
    text = text.strip()
    if len(shown) >= len(text):
        return text
    end = shown.rfind("\n")
    head = shown[:end] if end > len(shown) // 2 else shown
    return f"{head}\n[The first {len(head):,} of {len(text):,} characters. All of it is in {where}.]"


def enclosed(tag: str, path: str, text: str) -> str:
    """Return the text between a pair of tags that it cannot close itself."""
    inner = re.sub(rf"<(/?)(?={tag})", r"<\\\1", text, flags=re.IGNORECASE)
    quoted = path.replace('"', "'")
    return f'<{tag} path="{quoted}">\n{inner.strip()}\n</{tag}>'


def in_one_line(text: str) -> str:
    """Return text in which what is no visible character is an escape: names of files can hold line feeds."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def relative(path: str, folder: str) -> str:
    """Return an absolute path as seen from a folder. Unlike `posixpath.relpath`, it asks the system nothing."""
    parts, above = path.rstrip("/").split("/"), folder.rstrip("/").split("/")
    common = len(posixpath.commonprefix([parts, above]))
    return "/".join([*(".." for _ in above[common:]), *parts[common:]]) or "."


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or in it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _refusal(real: str, borders: Sequence[str]) -> str | None:
    """Return why a path with no links in it is not read.

    Args:
        real: The path.
        borders: The workspace's folder, and the one around it up to which the project goes.
    """
    inside = next((border for border in borders if is_below(real, border)), None)
    if inside is None:
        return f"it leads to {real!r}, which is outside of the project."
    names = relative(real, inside).split("/")
    hidden = [name for name in names if name.startswith(".") and name != "." and name not in _NOT_HIDDEN]
    # A .env or .git/config holds secrets that nobody has registered, and what is read here is sent to the model unasked.
    return f"it leads to {real!r}, and hidden files are not read." if hidden else None
