"""`agents.toml`: the agents of a server, each a table `[agents.NAME]`."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NoReturn, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentcore.agent import Agent
from agentcore.condense import Summary
from agentcore.context import AgentContext, ContextSource, ProjectFiles
from agentcore.errors import ToolNotFound
from agentcore.llm import LLM
from agentcore.mcp import MCPPrompts
from agentcore.mcp.registry import resolve_mcp_server
from agentcore.tools import AnyTool, ask_user
from agentcore_tools import FACTORIES, coding_tools, planning_tools, readonly_tools

_PRESETS: Final[Mapping[str, Callable[[str], Sequence[AnyTool]]]] = MappingProxyType(
    {
        "coding": coding_tools,
        "readonly": lambda model: readonly_tools(),  # noqa: ARG005 the same for every model
        "planning": lambda model: planning_tools(),  # noqa: ARG005
        "none": lambda model: (),  # noqa: ARG005
    }
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ProfileError(ValueError):
    """A file of agents has a fault: the message names the file, and the line or the key."""


class AgentProfile(BaseModel):
    """One agent of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1)]
    """As in "anthropic/claude-sonnet-4-5"."""
    description: str = ""
    """For people who choose one."""
    tools: str | tuple[str, ...] = "coding"
    """"coding", "readonly", "planning" or "none", or a list of names of tools."""
    mcp: tuple[str, ...] = ()
    """Names of MCP servers that this program registered, as `agentcore serve --mcp FILE` does."""
    ask_user: bool = True
    """True if it may ask questions."""
    instructions: str | None = None
    system_prompt: str | None = None
    project_files: bool = True
    """True if it reads the AGENTS.md of its workspace."""
    condenser: Literal["summary", "none"] = "summary"
    max_parallel_calls: Annotated[int, Field(ge=1)] = 8
    base_url: str | None = None
    api_key_env: str | None = None
    """The variable that has the key, where it is not the provider's usual one."""
    settings: dict[str, Any] = {}
    """Other settings of `LLM`, as temperature or reasoning_effort."""

    def build(self) -> Agent:
        """Make the agent.

        Raises:
            ValueError: A setting does not fit, or there is no such tool.
        """
        llm = LLM(model=self.model, base_url=self.base_url, api_key=self._find_key(), **self.settings)
        sources: list[ContextSource] = [
            *([ProjectFiles()] if self.project_files else []),
            *([MCPPrompts()] if self.mcp else []),
        ]
        return Agent(
            llm=llm,
            tools=(
                *self._choose_tools(llm.model),
                *((ask_user,) if self.ask_user else ()),
                *(resolve_mcp_server(name) for name in self.mcp),
            ),
            instructions=self.instructions,
            system_prompt=self.system_prompt,
            context=AgentContext(sources=sources) if sources else None,
            condenser=Summary() if self.condenser == "summary" else None,
            max_parallel_calls=self.max_parallel_calls,
        )

    def _find_key(self) -> str | None:
        if self.api_key_env is None:
            return None
        if not (key := os.environ.get(self.api_key_env, "").strip()):
            raise ValueError(f"api_key_env: the variable {self.api_key_env} is not set")
        return key

    def _choose_tools(self, model: str) -> Sequence[AnyTool]:
        if isinstance(self.tools, str):
            if (preset := _PRESETS.get(self.tools)) is None:
                raise ValueError(f"tools: there is no preset {self.tools!r}, only {', '.join(_PRESETS)}")
            return preset(model)
        if unknown := [name for name in self.tools if name not in FACTORIES]:
            raise ValueError(f"tools: there is no tool {unknown[0]!r}, only {', '.join(FACTORIES)}")
        return tuple(cast("Callable[[], AnyTool]", FACTORIES[name])() for name in self.tools)


def load_profiles(path: Path) -> dict[str, tuple[AgentProfile, Agent]]:
    """Read a file of agents. It touches the disk: call it in a worker thread.

    Raises:
        ProfileError: It can't be read, or something in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise ProfileError(f"{path}: it cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ProfileError(f"{path}: it is not UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{path}: {error}.") from None  # which names line and column
    if unknown := sorted(data.keys() - {"agents"}):
        raise ProfileError(f"{path}: unknown key {unknown[0]!r}. Agents are tables such as [agents.coder].")
    tables: Any = data.get("agents")
    if not isinstance(tables, dict) or not tables:
        raise ProfileError(f"{path}: it has no agents. Add a table such as [agents.coder] with a model.")
    return {name: _load(path, name, table) for name, table in cast("dict[str, Any]", tables).items()}


def _load(path: Path, name: str, table: Any) -> tuple[AgentProfile, Agent]:
    if _NAME.fullmatch(name) is None:
        raise ProfileError(f"{path}: [agents.{name!r}]: a name has 1 to 64 letters, digits, '.', '_' or '-'.")
    if not isinstance(table, dict):
        raise ProfileError(f"{path}: agents.{name}: write it as a table, [agents.{name}].")
    try:
        profile = AgentProfile.model_validate(table)
    except ValidationError as error:
        _refuse(path, name, error)
    try:
        return profile, profile.build()
    except ValidationError as error:
        _refuse(path, name, error)
    except (ValueError, TypeError, ToolNotFound) as error:
        message = str(error)
        end = "" if message.endswith("?") else "."
        raise ProfileError(f"{path}: [agents.{name}]: {message.rstrip('.')}{end}") from None


def _refuse(path: Path, name: str, error: ValidationError) -> NoReturn:
    detail = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in detail["loc"])
    message = "there is no such key" if detail["type"] == "extra_forbidden" else detail["msg"]
    message = message.removeprefix("Value error, ")
    where = f"[agents.{name}] {key}".rstrip()
    raise ProfileError(f"{path}: {where}: {message[:1].lower()}{message[1:].rstrip('.')}.") from None
