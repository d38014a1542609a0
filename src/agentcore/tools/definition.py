"""A tool: what a model may do, how it is described, and how it is done."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from pydantic import ConfigDict, JsonValue, ValidationError

from agentcore._text import Mask, already_masked
from agentcore._value import Value
from agentcore.assessment import SecurityRisk
from agentcore.display import DisplayBlock
from agentcore.messages import ToolSchema
from agentcore.schema import schema_of
from agentcore.tools.arguments import argument_error
from agentcore.tools.context import ToolContext
from agentcore.tools.observation import Observation
from agentcore.tools.question import Question
from agentcore.tools.resources import Resource
from agentcore.tools.resumption import Resumption
from agentcore.workspace import Workspace


class Action(Value):
    """The arguments of one call. Each field, with the sentence under it, is what the model is told to fill in."""

    # Arguments are recorded and shown by the names that a model uses for them.
    model_config = ConfigDict(serialize_by_alias=True)


# The sentence under a field is the field's description in the schema. Set for subclasses alone: reading the source of this
# class, which has no fields, would be a tenth of what importing agentcore costs.
Action.model_config["use_attribute_docstrings"] = True


class ToolAnnotations(Value):
    """Hints of what a tool does to the world. They are the tool's own word, not a guarantee."""

    title: str | None = None
    """A name for people."""
    read_only: bool = False
    """It changes nothing. It may be run again after a crash, and beside other tools that only read."""
    destructive: bool = True
    """It may overwrite or delete; of no meaning where it only reads."""
    idempotent: bool = False
    """Doing it twice with the same arguments is doing it once."""
    open_world: bool = True
    """It reaches beyond the workspace: the network, other people's services."""


class ToolSpec(Value):
    """The record of a tool, from which `resolve_tool` makes it again."""

    name: str
    """The name of a factory (see `register_tool`), which need not be the tool's own name."""
    params: dict[str, JsonValue] = {}
    """The keyword arguments of the factory."""


class ToolsetSpec(Value):
    """The record of a toolset, from which `resolve_toolset` makes it again. Never holds the value of a secret."""

    name: str
    """The name of a factory (see `register_toolset`), which need not be the toolset's own name."""
    params: dict[str, JsonValue] = {}
    """The keyword arguments of the factory."""


ActionT = TypeVar("ActionT", bound=Action)
ObservationT = TypeVar("ObservationT", bound=Observation)

Arguments: TypeAlias = dict[str, JsonValue]
"""The arguments of a call before they are an action: as the model wrote them, or repaired."""

Aliases: TypeAlias = tuple[str | tuple[str, Callable[[Arguments], Arguments | None]], ...]
"""Other names that models call a tool by; a name whose arguments are others too comes with a function.

The function makes the tool's arguments of those that came under the name. It returns None where the tool was not meant.
"""

Ignored: TypeAlias = tuple[str | tuple[str, JsonValue], ...]
"""Names of arguments that change nothing; a pair of a name and a value is ignored with that value only."""

Executor: TypeAlias = Callable[[ActionT, ToolContext], Awaitable[ObservationT]]
"""A function that carries out an action."""

# What every provider takes as the name of a function.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tool(Generic[ActionT, ObservationT]):
    """A tool. It never changes and holds no state, so that one may serve any number of conversations at once.

    `execute` does one action. A tool with live state (a shell, a browser) gives `open` instead, which is entered once per
    conversation and yields the function that does its actions.
    """

    name: str
    """1 to 64 letters, digits, `_` or `-`."""
    description: str
    """The description that the model reads."""
    action: type[ActionT]
    """The model of its arguments."""
    execute: Executor[ActionT, ObservationT] | None = None
    """Does one action. To tell the model what went wrong and what to do, it raises `ToolError`."""
    open: Callable[[Workspace, str], AbstractAsyncContextManager[Executor[ActionT, ObservationT]]] | None = None
    """Opens what does the actions of one conversation; called with the workspace and the conversation's id."""
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    resources: Callable[[ActionT, str], Sequence[Resource]] | Sequence[Resource] | None = None
    """The resources that an action uses; a function is called with the action and the path of the workspace's folder.

    None is the whole workspace, written, or read where the tool is read-only. An empty sequence is nothing at all.
    """
    reconcile: Callable[[ActionT, ToolContext], Awaitable[ObservationT | None]] | None = None
    """Asked after a crash what became of an action that had started: its observation, or None where that cannot be known."""
    resume: Callable[[ActionT, Resumption, ToolContext], Awaitable[ObservationT]] | None = None
    """Continues a call that raised `InputRequired`, with the answer or with the reason why there is none.

    Without it, a call that raises `InputRequired` fails.
    """
    aliases: Aliases = ()
    """Other names that models call it by."""
    normalize: Callable[[Arguments], Arguments] | None = None
    """Repairs arguments before they are checked: infers a missing field, say. What is right already it leaves alone.

    It may raise `ToolError` to tell the model what to do instead.
    """
    ignored: Ignored = ()
    """Arguments that models send out of habit and that change nothing here. They are dropped, and the answer says so."""
    risk: Callable[[ActionT], SecurityRisk] | SecurityRisk | None = None
    """How much harm an action could do. None is low where the tool is read-only, else unknown."""
    finishes: bool = False
    """The run ends with this call."""
    question: Callable[[ActionT], Question] | None = None
    """Makes the question to a person that a call is. Such a call is not executed: the answer is its observation."""
    display_call: Callable[[ActionT], Sequence[DisplayBlock]] | None = None
    """Describes a call to people: they see it before they decide about it. None: by the tool's name and the arguments.

    It is called in the step, on the event loop: it computes from the action alone and waits for nothing.
    """
    display_answer: Callable[[ActionT, ObservationT], Sequence[DisplayBlock]] | None = None
    """Describes an answer to people, likewise. None, or no block: by the words that the model reads."""
    spec: ToolSpec | None = None
    """The record of it; None where it cannot be made again from a record, as when it is changed with `replace`."""

    def __post_init__(self) -> None:
        """Refuse what could not work."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} can't be the name of a tool: use 1 to 64 letters, digits, '_' or '-'.")
        if (self.execute is None) == (self.open is None):
            raise ValueError(f"The tool {self.name!r} needs one of execute and open, and not both.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @cached_property
    def schema(self) -> ToolSchema:
        """The schema that the model reads.

        Raises:
            SchemaError: the action has a field that JSON Schema can't say.
        """
        made = _schemas.setdefault(self.action, {})
        schema = made.get((self.name, self.description))
        if schema is None:
            parameters = schema_of(self.action)
            # The description is the tool's; the docstring of an action is for programmers.
            parameters.pop("description", None)
            schema = made[self.name, self.description] = ToolSchema(
                name=self.name, description=self.description, parameters=parameters
            )
        return schema

    def parse(self, arguments: Mapping[str, Any], *, mask: Mask = already_masked) -> ActionT:
        """Return the action that the arguments describe.

        Args:
            arguments: The arguments.
            mask: Replaces secrets in the text of the error, where the arguments may hold the values of some.

        Raises:
            ToolArgumentsError: they do not fit; its text says what is wrong with which.
        """
        try:
            return self.action.model_validate(dict(arguments))
        except ValidationError as error:
            raise argument_error(self.name, error, arguments, self.schema.parameters, mask=mask) from error

    def open_executor(
        self, workspace: Workspace, conversation_id: str
    ) -> AbstractAsyncContextManager[Executor[ActionT, ObservationT]]:
        """Open what does the actions of one conversation; of a tool without live state that is `execute`."""
        if self.open is not None:
            return self.open(workspace, conversation_id)
        assert self.execute is not None, "one of the two is given"
        return nullcontext(self.execute)

    def resources_of(self, action: ActionT, root: str) -> tuple[Resource, ...]:
        """Return the resources that the action uses; `root` is the path of the workspace's folder."""
        if self.resources is None:
            return (Resource.workspace("read" if self.annotations.read_only else "write"),)
        return tuple(self.resources(action, root) if callable(self.resources) else self.resources)

    def risk_of(self, action: ActionT) -> SecurityRisk:
        """Return how much harm the action could do, as far as the tool knows."""
        if self.risk is None:
            return SecurityRisk.LOW if self.annotations.read_only else SecurityRisk.UNKNOWN
        return self.risk(action) if callable(self.risk) else self.risk


_schemas: WeakKeyDictionary[type[Action], dict[tuple[str, str], ToolSchema]] = WeakKeyDictionary()
"""The schemas made of an action, by the tool's name and description: each conversation may make its tools anew, and making a schema
takes longer than a step."""

AnyTool: TypeAlias = Tool[Any, Any]
"""A tool, whatever its action and observation."""
