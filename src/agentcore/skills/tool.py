"""The tool by which a model reads a skill."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Sequence
from typing import Final

from pydantic import ConfigDict, Field, JsonValue

from agentcore._text import clip, remove_invisible
from agentcore.context import PART_KEY
from agentcore.errors import AgentcoreError, ToolError
from agentcore.messages import ResultBlock
from agentcore.skills.activate import list_files, read_text
from agentcore.skills.frontmatter import Malformed
from agentcore.skills.library import Library, Places, find_library
from agentcore.skills.skill import MOST_BYTES, Skill, decode, one_line
from agentcore.tools import Action, Observation, Tool, ToolAnnotations, ToolContext

_MOST_NAMES: Final = 40


class SkillAction(Action):
    """A skill, or a file of one."""

    # Reading docstrings from the source would take most of the time that importing this module takes.
    model_config = ConfigDict(use_attribute_docstrings=False)

    name: str = Field(min_length=1, max_length=200, description="The name of the skill, as it is listed.")
    file: str = Field(
        default="", description='A file in its folder, as in "references/api.md". Empty for its instructions.'
    )


class SkillObservation(Observation):
    """The text of a skill."""

    text: str
    part: str | None = None
    """The part of context that the text shows."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the name of the part: the text stands in the content already."""
        return {} if self.part is None else {PART_KEY: self.part}


def skill_tool(places: Places) -> Tool[SkillAction, SkillObservation]:
    """Make the tool. It looks for the skills when it is called, so that it reads them as they are then."""

    async def execute(action: SkillAction, ctx: ToolContext) -> SkillObservation:
        library = await find_library(ctx.workspace, places)
        skill = _find(library, action.name)
        try:
            if action.file:
                return await _read_file(library, skill, action.file, ctx)
            if skill.part in ctx.shown_parts:
                return SkillObservation(text=f"The skill {skill.name!r} is shown above already. Follow it from there.")
            text = await read_text(library, skill, mask=ctx.secrets.mask)
        except Malformed as error:
            raise ToolError(f"{skill.where}:{error.line}: {error.sentence}") from error
        except ToolError:
            raise
        except AgentcoreError as error:
            raise ToolError(f"The skill {skill.name!r} can't be read: {error}") from error
        return SkillObservation(text=text, part=skill.part)

    return Tool(
        name="skill",
        description="Read a skill: the instructions for a certain task. Do so before you begin a task that a listed skill is for.",
        action=SkillAction,
        execute=execute,
        annotations=ToolAnnotations(
            title="Read a skill", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        aliases=("invoke_skill", "read_skill", "use_skill"),
        ignored=("security_risk",),
    )


def _find(library: Library, name: str) -> Skill:
    skill = library.skills.get(name.strip().removeprefix("/"))
    if skill is not None and skill.callable:
        return skill
    if skill is not None:
        raise ToolError(f"The skill {skill.name!r} is for the user to call, by /{skill.name}.")
    names = [each.name for each in library.skills.values() if each.callable]
    # Here because only mistakes need it.
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(name, names, n=3)
    listed = ", ".join((close or names)[:_MOST_NAMES]) or "none"
    raise ToolError(f"There is no skill {one_line(name, 80)!r}. {'Did you mean' if close else 'There are'}: {listed}.")


async def _read_file(library: Library, skill: Skill, file: str, ctx: ToolContext) -> SkillObservation:
    reader = library.reader(skill)
    files = await list_files(reader, skill) if skill.is_folder else ()
    # Only what is listed, so that no path leads out of the folder, and no link is followed.
    if (wanted := file.removeprefix("./")) not in files:
        raise ToolError(
            f"The skill {skill.name!r} has no file {one_line(file, 200)!r}. It has: {', '.join(files) or 'none'}."
        )
    path = f"{skill.folder}/{wanted}"
    text = remove_invisible(decode(await reader.read(path, MOST_BYTES)))
    return SkillObservation(text=clip(text, mask=ctx.secrets.mask, full_output_path=path))
