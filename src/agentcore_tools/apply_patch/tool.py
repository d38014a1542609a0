"""Applying a patch as a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentcore.display import DiffBlock, DisplayBlock, code_span
from agentcore.errors import ToolError, WorkspaceError
from agentcore.tools import Action, Arguments, Resource, Tool, ToolContext
from agentcore_tools._calls import TextAnswer, file_diff, heading
from agentcore_tools.apply_patch.applying import PatchedFile, Planned, apply, plan
from agentcore_tools.apply_patch.grammar import paths_of, read_patch
from agentcore_tools.apply_patch.unified import from_unified
from agentcore_tools.files.change import CUT
from agentcore_tools.files.files import Files, file_tool


class ApplyPatchAction(Action):
    """A patch."""

    patch: str
    """The whole patch, from `*** Begin Patch` to `*** End Patch`."""


class ApplyPatchObservation(TextAnswer):
    """All of the patch was applied."""

    files: tuple[PatchedFile, ...]
    """In the order of the patch."""
    diff: str
    """The change as a unified diff of all files. Of a file with a long one it is cut."""


# Not by the grammar: of a patch that is refused a person sees, too, which files it was about.
_FILES: Final = re.compile(r"^\*\*\* (Add File|Delete File|Update File|Move to): (.+)$", re.MULTILINE)
_VERBS: Final = {"Add File": "add ", "Delete File": "delete "}
_MOST_FILES: Final = 6


def show_call(action: ApplyPatchAction) -> Sequence[DisplayBlock]:
    """Show which files are to change, and the patch."""
    files: list[str] = []
    try:
        patch = from_unified(action.patch)
    except ToolError:
        patch = action.patch  # it is refused, and shown below
    for what, path in _FILES.findall(patch):
        name = code_span(path.strip())
        if what == "Move to" and files:
            files[-1] = f"{files[-1]} -> {name}"
        else:
            files.append(f"{_VERBS.get(what, '')}{name}")
    more = f"and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    return (*heading(", ".join(files[:_MOST_FILES]), more), DiffBlock(diff=action.patch))


_DESCRIPTION: Final = """\
Change files by a patch. All of it is applied, or nothing. It looks so:

*** Begin Patch
*** Add File: path/new.py
+each line of a new file
*** Update File: path/old.py
*** Move to: path/renamed.py
@@ def function(argument):
     a line that stays, exactly as it is in the file
-    a line that goes
+    a line that comes
*** Delete File: path/gone.py
*** End Patch

- Move is for renaming only. A file comes once, with its hunks in the order of the file.
- A hunk has about 3 lines that stay above and below what changes. Where these occur more than once, '@@' and a line further up, \
such as the head of the class or function, say which; several '@@' lines lead from the outer to the inner.
- '*** End of File' below a hunk says that it is at the end of the file.
- A path counts from the workspace's folder."""
_OTHER_NAMES: Final = ("input", "patch_text", "diff", "content", "command")


def apply_patch_tool(extra_roots: Sequence[str] = ()) -> Tool[ApplyPatchAction, ApplyPatchObservation]:
    """Make the tool with which an agent changes several files at once.

    Args:
        extra_roots: Folders outside of the workspace's in which it may do so, too; "/" is everything.
    """
    return file_tool(
        _apply_patch,
        ApplyPatchAction,
        name="apply_patch",
        title="Apply a patch",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        resources=_resources,
        aliases=("applypatch", "patch"),
        normalize=_normalize,
        display_call=show_call,
        display_answer=lambda _action, observation: file_diff(None, observation.diff),
    )


def _resources(action: ApplyPatchAction, root: str) -> tuple[Resource, ...]:
    try:
        patches = read_patch(action.patch)
    except ToolError:
        return ()  # it is refused, and touches nothing
    return tuple(Resource.file(path, "write", root=root) for path in paths_of(patches))


def _normalize(arguments: Arguments) -> Arguments:
    if "patch" in arguments:
        return arguments
    name = next((name for name in _OTHER_NAMES if name in arguments), None)
    if name is None:
        return arguments
    given = arguments[name]
    if isinstance(given, list) and given:
        given = given[-1]  # as on a command line: ["apply_patch", "..."]
    return {**{key: value for key, value in arguments.items() if key != name}, "patch": given}


async def _apply_patch(files: Files, action: ApplyPatchAction, _ctx: ToolContext) -> ApplyPatchObservation:
    planned = await plan(files, read_patch(action.patch))
    try:
        await apply(files, planned)
    except (ToolError, WorkspaceError) as error:
        notes: Sequence[str] = getattr(error, "__notes__", ())
        state = " ".join(notes) if notes else "All files are as they were."
        raise ToolError(f"{error} {state}") from error
    text = "\n".join(["The patch was applied:", *(_summary(each, f"{files.workspace.root}/") for each in planned)])
    diff = "".join(each.diff for each in planned)
    return ApplyPatchObservation(text=text, files=tuple(each.file for each in planned), diff=diff)


def _summary(planned: Planned, root: str) -> str:
    file = planned.file
    to = "" if file.moved_to is None else f" to {file.moved_to.removeprefix(root)}"
    text = f"- {file.outcome} {file.path.removeprefix(root)}{to}"
    if not planned.diff.endswith(CUT):
        signs = [line[:1] for line in planned.diff.split("\n")[2:]]
        text += f" (+{signs.count('+')} -{signs.count('-')})"
    return f"{text} {planned.note}".rstrip()
