"""What `.gitignore` files leave out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Rules", "is_ignored", "read_rules"]

Decide: TypeAlias = Callable[[str], bool | None]


class Rules(NamedTuple):
    """What one `.gitignore` says."""

    base: str
    """Its folder, relative to where the walk starts, with a slash behind it unless that is where it starts."""
    above: str
    """For a `.gitignore` above of that: the way from its folder to there, with a slash behind it."""
    decide: Decide
    """True for what it leaves out, False for what it takes back in, None for what it says nothing of."""


def read_rules(text: str, base: str = "", above: str = "") -> Rules:
    """Read a `.gitignore`."""
    # Here, because only who searches a folder with such a file needs it.
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    spec = GitIgnoreSpec.from_lines(_good_lines(text))

    def decide(path: str) -> bool | None:
        return spec.check_file(path).include

    return Rules(base, above, decide)


def _good_lines(text: str) -> list[str]:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 as above

    lines: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue  # git passes over what it can't read, too
        lines.append(line)
    return lines


def is_ignored(path: str, rules: Sequence[Rules]) -> bool:
    """Say whether a path is left out; a folder's ends in a slash. The nearest file that speaks of it decides."""
    for each in reversed(rules):
        decided = each.decide(each.above + path[len(each.base) :])
        if decided is not None:
            return decided
    return False
