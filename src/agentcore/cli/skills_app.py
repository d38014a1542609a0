"""The commands of `agentcore skills`, and their options."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from agentcore.cli.options import AsJson, Debug, Later, execute

if TYPE_CHECKING:
    from agentcore.cli import skills
else:
    skills = Later("skills")

skills_app = typer.Typer(help="List and check skills.", no_args_is_help=True)


@skills_app.command("list", short_help="List the skills that an agent finds.")
def skills_list_command(
    *,
    workspace: Annotated[str, typer.Option("--workspace", "-w", help="Folder of the project.", metavar="FOLDER")] = ".",
    json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the skills that an agent finds in a folder: those of the project, of the user, and of installed packages.

    Project and user keep them in .agents/skills, .agentcore/skills, .claude/skills or .openhands/skills (or microagents). What was
    left out, changed, or is shadowed by another skill of the same name stands at the end.
    """
    execute(lambda: skills.list_skills(os.path.abspath(workspace), json=json), debug)


@skills_app.command("check", short_help="Check skills by the strict rules.")
def skills_check_command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Skills, or folders with skills; those of this folder if none is named."),
    ] = None,
    *,
    debug: Debug = False,
) -> None:
    """Check skills by the rules of the AgentSkills specification, which are stricter than what an agent takes.

    Prints a line `file:line: sentence` for each problem. The exit code is 1 if there is one.
    """
    execute(lambda: skills.check_skills(paths or ()), debug)
