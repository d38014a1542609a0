"""Applying a patch as a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from pydantic import JsonValue

from agentcore.display import DiffBlock, DisplayBlock, code_span
from agentcore.errors import ToolError, WorkspaceError
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Arguments, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._display import file_diff, heading
from agentcore_tools.apply_patch.applying import PatchedFile, Planned, apply, plan
from agentcore_tools.apply_patch.grammar import UpdateFile, read_patch
from agentcore_tools.files.allowed_paths import AllowedPaths
from agentcore_tools.files.change import CUT
from agentcore_tools.files.files import Files, opening


class ApplyPatchAction(Action):
    """A patch."""

    patch: str
    """The whole patch, from `*** Begin Patch` to `*** End Patch`."""


class ApplyPatchObservation(Observation):
    """All of the patch was applied."""

    text: str
    """The text for the model."""
    files: tuple[PatchedFile, ...]
    """In the order of the patch."""
    diff: str
    """The change as a unified diff of all files. Of a file with a long one it is cut."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the changes; the text is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})


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
    allowed = AllowedPaths.of(extra_roots)
    return Tool(
        name="apply_patch",
        description=_DESCRIPTION,
        action=ApplyPatchAction,
        open=opening(_Patcher, allowed),
        annotations=ToolAnnotations(title="Apply a patch", open_world=False),
        resources=_resources,
        aliases=("applypatch", "patch"),
        normalize=_normalize,
        display_call=show_call,
        display_answer=show_answer,
        spec=ToolSpec(name="apply_patch", params=allowed.params),
    )


def _resources(action: ApplyPatchAction, root: str) -> tuple[Resource, ...]:
    try:
        patches = read_patch(action.patch)
    except ToolError:
        return ()  # it is refused, and touches nothing
    paths = [
        path for patch in patches for path in (patch.path, patch.move_to if isinstance(patch, UpdateFile) else None)
    ]
    return tuple(Resource.file(path, "write", root=root) for path in paths if path is not None)


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


@final
class _Patcher:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def __call__(self, action: ApplyPatchAction, ctx: ToolContext) -> ApplyPatchObservation:  # noqa: ARG002 every executor is given it
        planned = await plan(self._files, read_patch(action.patch))
        try:
            await apply(self._files, planned)
        except (ToolError, WorkspaceError) as error:
            notes: Sequence[str] = getattr(error, "__notes__", ())
            state = " ".join(notes) if notes else "All files are as they were."
            raise ToolError(f"{error} {state}") from error
        text = "\n".join(["The patch was applied:", *map(self._summary, planned)])
        return ApplyPatchObservation(
            text=text, files=tuple(each.file for each in planned), diff="".join(each.diff for each in planned)
        )

    def _summary(self, planned: Planned) -> str:
        file, root = planned.file, f"{self._files.workspace.root}/"
        to = "" if file.moved_to is None else f" to {file.moved_to.removeprefix(root)}"
        if planned.diff.endswith(CUT):
            return f"- {file.outcome} {file.path.removeprefix(root)}{to}"
        added = sum(line.startswith("+") for line in planned.diff.split("\n")[2:])
        gone = sum(line.startswith("-") for line in planned.diff.split("\n")[2:])
        return f"- {file.outcome} {file.path.removeprefix(root)}{to} (+{added} -{gone})"
