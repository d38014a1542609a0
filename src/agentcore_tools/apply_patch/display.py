"""How a patch, and what came of it, is shown to people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentcore.display import DiffBlock, DisplayBlock, code_span
from agentcore_tools._display import file_diff, heading
from agentcore_tools.apply_patch.action import ApplyPatchAction
from agentcore_tools.apply_patch.observation import ApplyPatchObservation

__all__ = ["show_answer", "show_call"]

# Not by the grammar: of a patch that is refused a person sees, too, which files it was about.
_FILES: Final = re.compile(r"^\*\*\* (Add File|Delete File|Update File|Move to): (.+)$", re.MULTILINE)
_VERBS: Final = {"Add File": "add ", "Delete File": "delete "}
_MOST_FILES: Final = 6


def show_call(action: ApplyPatchAction) -> Sequence[DisplayBlock]:
    """Show which files are to change, and the patch."""
    files: list[str] = []
    for what, path in _FILES.findall(action.patch):
        name = code_span(path.strip())
        if what == "Move to" and files:
            files[-1] = f"{files[-1]} -> {name}"
        else:
            files.append(f"{_VERBS.get(what, '')}{name}")
    more = f"and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    return (*heading(", ".join(files[:_MOST_FILES]), more), DiffBlock(diff=action.patch))


def show_answer(_action: ApplyPatchAction, observation: ApplyPatchObservation) -> Sequence[DisplayBlock]:
    """Show the changes as they came out."""
    return file_diff(None, observation.diff)
