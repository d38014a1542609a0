"""Sources of context, opened on a real folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from agentcore._text import Mask, already_masked
from agentcore.context.source import ContextPart, ContextSource, Happened, OpenSource, SourceContext
from agentcore.workspace import LocalWorkspace


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, with the folders above them."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@asynccontextmanager
async def opened(source: ContextSource, root: Path, mask: Mask = already_masked) -> AsyncGenerator[OpenSource]:
    """Open a source on a folder; nothing may hang."""
    with anyio.fail_after(20):
        async with LocalWorkspace(root) as workspace:
            yield await source.open(SourceContext(workspace=workspace, mask=mask))


async def parts_of(source: ContextSource, root: Path, mask: Mask = already_masked) -> dict[str, str]:
    """Return the parts for the system prompt by their names."""
    async with opened(source, root, mask) as source_open:
        return texts(source_open.parts)


async def problems_of(source: ContextSource, root: Path) -> list[str]:
    """Return what was left out, in sentences."""
    async with opened(source, root) as source_open:
        return list(source_open.problems)


async def follow(source: OpenSource, root: Path, *touched: str) -> dict[str, str]:
    """Touch files and return the new parts by their names."""
    paths = [str(root.resolve() / path) for path in touched]
    return texts(await source.follow(Happened(touched=paths)))


def texts(parts: Sequence[ContextPart]) -> dict[str, str]:
    """Return parts by their names, which have to be different."""
    found = {part.name: part.text for part in parts}
    assert len(found) == len(parts)
    return found
