"""The settings of a server, as a program passes them or as the environment has them."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agentcore.workspace import Workspace
from agentcore_sandbox.network.policy import Allow, NetworkPolicy, parse_policy
from agentcore_serve.limits import RequestLimits

WorkspacesFactory = Callable[[str], Workspace]
"""Makes the workspace of a folder below the server's root: it gets the folder's path, and returns a workspace that is not entered."""

PREFIX: Final = "AGENTCORE_SERVE_"
"""The beginning of the names of the variables that hold settings."""

_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0)]


class SettingsError(ValueError):
    """A setting that is not what it has to be, in one sentence that names it."""


class ServeLimits(BaseModel):
    """The bounds of conversations on a server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open_conversations: _Count = 1_000
    """How many are open at once; one that rests is closed when room is needed."""
    running_conversations: _Count = 100
    """How many work at once; further runs are answered with 429."""
    idle_seconds: _Seconds = 600.0
    """How long one that rests, and holds nothing open, stays open."""
    held_seconds: _Seconds = 86_400.0
    """How long one that rests stays open while a tool session is open in it."""
    restarts: Annotated[int, Field(ge=0)] = 3
    """How often a conversation is continued after a crash without a new reply of its model."""
    follow_seconds: _Seconds = 0.5
    """How often the log of another process is read on for those who watch it."""
    drain_seconds: _Seconds = 10.0
    """How long steps may go on when the server ends."""


class ServeSettings(BaseModel):
    """The settings of a server: where it listens, what it keeps where, and who may do what."""

    # What is wrong may be the value of a key: it is named, not shown.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    host: str = "127.0.0.1"
    """The address it listens at; others than loopback need TLS, or a proxy in front."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8_420
    """0 takes any that is free."""
    unix: Path | None = None
    """A socket to listen at, in place of a port."""
    store: Path = Path("~/.agentcore/serve")
    """Where logs, the index and keys are kept."""
    root: Path = Path()
    """The folder that all workspaces are in."""
    agents: Path | None = None
    """A file of agents, as in agents.toml."""
    api_key_file: Path | None = None
    """A file with one key of 32 characters or more that may do everything."""
    auth: bool = True
    """False lets everybody do everything; on loopback only."""
    behind_proxy: bool = False
    """True if a proxy in front ends TLS and says who asks."""
    tls_cert: Path | None = None
    """The certificate, with `tls_key`."""
    tls_key: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    """Names that requests may be addressed to, besides the one that is bound and those of loopback."""
    views_host: Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")] | None = None
    """A name below which each view of a box has a host of its own, so that all names below it have to lead to the server. For browsers of
    this machine there are those below localhost."""
    after_crash: Literal["continue", "pause"] = "continue"
    """The fate of conversations that worked when the server was killed."""
    retain_days: Annotated[float, Field(gt=0)] | None = None
    """Conversations that nothing happened in for so long are deleted; None keeps all."""
    shared_user: bool = False
    """True lets several owners work on this machine, whose shells can read each other's files."""
    allowed_modules: tuple[str, ...] = ()
    """Modules that tools of clients' own agents may be imported from."""
    allowed_parts: tuple[str, ...] = ()
    """Registered tools, toolsets, sources of context and condensers, by name, that clients' own agents may have besides
    those that come with agentcore and stay in the workspace."""
    model_addresses: tuple[str, ...] = ()
    """Hosts and networks on a private network that clients' own models may be at, as in "10.0.0.0/8"."""
    workspaces: WorkspacesFactory | None = Field(default=None, exclude=True)
    """Makes workspaces in place of `LocalWorkspace`."""
    sandbox: Literal["docker", "bubblewrap"] | None = None
    """Commands run in a container, or in namespaces of their own: one for each workspace, over its folder."""
    sandbox_image: str = "python:3.12"
    """The image of the containers: any with sh and Python."""
    network: str = "none"
    """The network of the boxes: "none", "full", or "allow:" and hosts with commas between them."""
    limits: ServeLimits = ServeLimits()
    """The bounds of conversations."""
    request_limits: RequestLimits = RequestLimits()
    """The bounds of requests."""

    @field_validator("store", "root", "agents", "api_key_file", "tls_cert", "tls_key", "unix", mode="after")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()

    @model_validator(mode="after")
    def _check_sandbox(self) -> Self:
        if self.sandbox is None and {"sandbox_image", "network"} & self.model_fields_set:
            raise ValueError("An image and a network are those of a sandbox: name one, as in sandbox='docker'.")
        if self.sandbox is not None and self.workspaces is not None:
            raise ValueError("Pass sandbox= or workspaces=, not both.")
        if self.sandbox == "bubblewrap" and "sandbox_image" in self.model_fields_set:
            raise ValueError("An image is about Docker; bubblewrap shows the programs of this machine.")
        self.network_policy()
        return self

    def network_policy(self) -> NetworkPolicy:
        """Return the network of the boxes.

        Raises:
            ValueError: It is not one.
        """
        if self.network in ("none", "full"):
            return parse_policy(self.network)
        if not self.network.startswith("allow:"):
            raise ValueError(
                f"network is none, full or allow:HOST,HOST (as allow:example.org), not {self.network[:80]!r}."
            )
        return Allow(*(host.strip() for host in self.network.removeprefix("allow:").split(",") if host.strip()))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Self:
        """Make settings of the variables `AGENTCORE_SERVE_*`; what is given, and not None, goes before them.

        Several names are separated by commas; limits have names of their own, as AGENTCORE_SERVE_IDLE_SECONDS.

        Raises:
            SettingsError: A variable or an argument is not what it has to be, or there is no such setting.
        """
        environment = os.environ if environment is None else environment
        fields: dict[str, Any] = {}
        bounds: dict[str, dict[str, Any]] = {"limits": {}, "request_limits": {}}
        for variable in sorted(environment):
            name = variable.removeprefix(PREFIX).lower()
            if not variable.startswith(PREFIX) or not environment[variable].strip():
                continue
            group = next((group for group, model in _BOUNDS.items() if name in model.model_fields), None)
            if group is not None:
                bounds[group][name] = environment[variable].strip()
            elif name in cls.model_fields and name not in {*bounds, "workspaces"}:
                fields[name] = _read(cls, name, environment[variable].strip())
            else:
                raise SettingsError(f"{variable}: there is no such setting.")
        chosen = {name: value for name, value in given.items() if value is not None}
        try:
            return cls.model_validate({**bounds, **fields, **chosen})
        except ValidationError as error:
            detail = error.errors(include_url=False, include_input=False)[0]
            *_, name = ("settings", *(str(part) for part in detail["loc"] if isinstance(part, str)))
            if name == "settings":
                raise SettingsError(detail["msg"].removeprefix("Value error, ")) from None
            where = f"{name}=" if name in chosen else f"{PREFIX}{name.upper()}"
            raise SettingsError(f"{where}: {_lower_first(detail['msg'])}.") from None


_BOUNDS: Final[Mapping[str, type[BaseModel]]] = {"limits": ServeLimits, "request_limits": RequestLimits}


def _read(cls: type[BaseModel], name: str, text: str) -> Any:
    if cls.model_fields[name].annotation == tuple[str, ...]:
        if text.startswith("["):
            try:
                return tuple(cast("list[str]", json.loads(text)))
            except ValueError:
                raise SettingsError(f"{PREFIX}{name.upper()}: it begins with '[' and is not a JSON list.") from None
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
