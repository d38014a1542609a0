"""A value that could only fail later, or be ignored, is refused where it is given, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentcore import (
    LLM,
    Agent,
    AlwaysConfirm,
    ConfirmRisky,
    Conversation,
    FileStore,
    Host,
    Limits,
    LocalWorkspace,
    MemoryStore,
    Message,
    Usage,
    filtered,
    prefixed,
    renamed,
    tool,
)
from agentcore.errors import PathError
from agentcore.llm import FallbackLLM
from agentcore.stuck import StuckThresholds
from agentcore.testing import ScriptedLLM, say
from live_toolset import Service
from talks import talk

# The types would refuse most of what is tried here.
wrong: Any = {
    each.__name__: each
    for each in (
        LLM,
        Agent,
        ConfirmRisky,
        Conversation,
        FileStore,
        Limits,
        LocalWorkspace,
        StuckThresholds,
    )
}
w_prefixed: Any = prefixed
w_filtered: Any = filtered
w_renamed: Any = renamed


@tool
def ping() -> str:
    """Ping."""
    return "pong"


def plain() -> str:
    """Do nothing."""
    return ""


def agent(**arguments: Any) -> Agent:
    return wrong["Agent"](**{"llm": ScriptedLLM([say("done")]), **arguments})


def conversation(**arguments: Any) -> Conversation:
    return wrong["Conversation"](**{"agent": agent(), **arguments})


ONE_TOOL: Any = ping

CONSTRUCTORS: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("limits", lambda: wrong["Limits"](max_cost=1), TypeError, "Limits has no argument `max_cost`: did you mean `cost`?"),
    ("steps", lambda: wrong["Limits"](max_steps=3), TypeError, "did you mean `steps`?"),
    ("tokens", lambda: wrong["Limits"](token=3), TypeError, "did you mean `tokens`?"),
    ("turns", lambda: wrong["Limits"](max_turns=3), TypeError, "did you mean `steps`?"),
    ("no idea", lambda: wrong["Limits"](foo=3), TypeError, "no argument `foo`. It has `steps`, `cost`, `tokens`, "),
    ("limits by place", lambda: wrong["Limits"](3), TypeError, "Limits takes its arguments by name, as in Limits(steps=...)."),
    ("thresholds", lambda: wrong["StuckThresholds"](repeated_actions=1), TypeError, "did you mean `repeated_action`?"),
    ("policy", lambda: wrong["ConfirmRisky"](treshold="low"), TypeError, "did you mean `threshold`?"),
    ("policy by place", lambda: wrong["ConfirmRisky"]("low"), TypeError, "ConfirmRisky(threshold=...)"),
    ("agent by another name", lambda: agent(instruction="x"), TypeError, "did you mean `instructions`?"),
    ("llm setting", lambda: wrong["LLM"]("openai/gpt-5", temprature=1), TypeError, "did you mean `temperature`?"),
    ("llm habit", lambda: wrong["LLM"]("openai/gpt-5", max_tokens=1), TypeError, "did you mean `max_output_tokens`?"),
    ("llm by place", lambda: wrong["LLM"]("openai/gpt-5", 1), TypeError, "by name, except `model`, as in LLM(base_url=...)."),
    ("llm twice", lambda: wrong["LLM"]("openai/gpt-5", model="openai/x"), TypeError, "by name, except `model`"),
    ("fallback", lambda: FallbackLLM(LLM("openai/gpt-5"), wrong["LLM"]), TypeError, "Did you mean LLM(...)?"),
    ("agent model", lambda: agent(model="openai/gpt-5"), TypeError, "Agent has no argument `model`: did you mean `llm`?"),
    ("agent name", lambda: agent(tool=[ping]), TypeError, "did you mean `tools`?"),
    ("agent llm", lambda: agent(llm="openai/gpt-5"), TypeError, "not its name: LLM('openai/gpt-5')."),
    ("agent llm class", lambda: agent(llm=LLM), TypeError, "not the class LLM. Did you mean LLM(...)?"),
    ("agent no llm", lambda: agent(llm=None), TypeError, "`llm` must be a model, as LLM('openai/gpt-5'), not None."),
    ("one tool", lambda: agent(tools=ONE_TOOL), TypeError, "`tools` must be a list of tools and toolsets"),
    ("one tool's hint", lambda: agent(tools=ONE_TOOL), TypeError, "Put it in a list: tools=[...]."),
    ("function as tools", lambda: agent(tools=print), TypeError, "not the function print. Decorate it with @tool"),
    ("function as tool", lambda: agent(tools=[plain]), TypeError, "plain is neither a tool nor a toolset: decorate"),
    ("method as tool", lambda: agent(tools=[str.upper]), TypeError, "upper is neither a tool nor a toolset: decorate"),
    ("agent instructions", lambda: agent(instructions=3), TypeError, "text, or a function that returns text, or None, not 3."),
    ("agent stuck", lambda: agent(stuck=3), TypeError, "`stuck` must be StuckThresholds(...), or None, not 3."),
    ("agent unstuck", lambda: agent(stuck=False), TypeError, "`stuck` must be StuckThresholds(...), or None, not False."),
    ("agent prompt", lambda: agent(system_prompt=3), TypeError, "`system_prompt` must be text, or None, not 3."),
    ("agent condenser", lambda: agent(condenser=5), TypeError, "`condenser` must be a condenser, or None, not 5."),
    ("agent calls", lambda: agent(max_parallel_calls="8"), TypeError, "must be a whole number, not '8'."),
    ("agent defers", lambda: agent(defer_tools="yes"), TypeError, "must be True or False, or None, not 'yes'."),
    ("agent no calls", lambda: agent(max_parallel_calls=0), ValueError, "at least one call"),
    ("agent output", lambda: agent(output={"a": 1}), TypeError, "`output` must be a type, as a pydantic model, list[int]"),
    ("agent output name", lambda: agent(output="int"), TypeError, "not 'int'."),
    ("agent output function", lambda: agent(output=plain), TypeError, "not the function plain."),
    ("agent output class", lambda: agent(output=Service), TypeError, "The type Service can't be said in JSON Schema"),
    ("agent of a conversation", lambda: conversation(agent=LLM("openai/gpt-5")), TypeError, "`agent` must be an Agent("),
    ("conversation name", lambda: conversation(limit=Limits()), TypeError, "did you mean `limits`?"),
    ("id", lambda: conversation(id=5), TypeError, "`id` must be text, the id of a conversation, or None, not 5."),
    ("id path", lambda: conversation(id="a/b"), ValueError, "'a/b' can't be a conversation id"),
    ("secrets", lambda: conversation(secrets=["s3cret"]), TypeError, "not an object of type list."),
    ("workspace class", lambda: conversation(workspace=LocalWorkspace), TypeError, "Did you mean LocalWorkspace(...)?"),
    ("workspace number", lambda: conversation(workspace=5), TypeError, "`workspace` must be a folder or a workspace"),
    ("workspace empty", lambda: conversation(workspace=""), TypeError, "Pass '.' for the current folder."),
    ("store path", lambda: conversation(store="logs"), TypeError, "Pass FileStore('logs')."),
    ("store folder", lambda: conversation(store=Path("logs")), TypeError, "Pass FileStore('logs')."),
    ("store class", lambda: conversation(store=MemoryStore), TypeError, "Did you mean MemoryStore(...)?"),
    ("limits mapping", lambda: conversation(limits={"cost": 1}), TypeError, "`limits` must be Limits(steps=..., cost=...)"),
    ("confirm class", lambda: conversation(confirm=AlwaysConfirm), TypeError, "Did you mean AlwaysConfirm(...)?"),
    ("confirm text", lambda: conversation(confirm="risky"), TypeError, "a function that is asked about each call"),
    ("store durability", lambda: wrong["FileStore"]("x", durability="fsync"), TypeError, '"sync" or "flush", not \'fsync\'.'),
    ("store nowhere", lambda: wrong["FileStore"](""), TypeError, "Pass '.' for the current folder."),
    ("store seconds", lambda: wrong["FileStore"]("x", seconds=0), TypeError, "a number of seconds above 0, not 0."),
    ("store name", lambda: wrong["FileStore"]("x", durable="sync"), TypeError, "did you mean `durability`?"),
    ("folder", lambda: wrong["LocalWorkspace"](""), TypeError, "`path` must be the path of a folder, not ''."),
    ("folder name", lambda: wrong["LocalWorkspace"](".", inherit={}), TypeError, "did you mean `inherit_env`?"),
    ("folder env", lambda: wrong["LocalWorkspace"](".", env={"A": 1}), TypeError, "`env` must be a mapping of text to text"),
    ("prefixed", lambda: w_prefixed(Service, "a_"), TypeError, "the class Service. Did you mean Service(...)?"),
    ("prefixed tool", lambda: w_prefixed(ping, "a_"), TypeError, "`toolset` must be a toolset, not "),
    ("filtered", lambda: w_filtered(Service, ["a"]), TypeError, "the class Service"),
    ("renamed", lambda: w_renamed(Service("a"), [("a", "b")]), TypeError, "`names` must be a mapping of text to text"),
    ("message", lambda: Message.user(wrong["Limits"]), TypeError, "`content` must be text or a block, not the class Limits."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "error", "words"), [row[1:] for row in CONSTRUCTORS], ids=[row[0] for row in CONSTRUCTORS]
)
def test_a_wrong_value_is_refused_when_the_object_is_made(
    make: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "s3cret" not in str(raised.value)


Call = Callable[[Any], Any]

CALLS: list[tuple[str, Call, type[Exception], str]] = [
    ("send number", lambda it: it.send(5), TypeError, "`message` must be text or a Message, not 5."),
    ("send nothing", lambda it: it.send(" \n"), ValueError, "The message is empty."),
    ("run nothing", lambda it: it.run(""), ValueError, "To go on without one, call run() with no argument."),
    ("run empty message", lambda it: it.run(Message.user()), ValueError, "The message is empty."),
    ("approve", lambda it: it.approve(5), TypeError, "`ids` must be an id of an action or a list of them, or None, not 5."),
    ("approve arguments", lambda it: it.approve("a", [1]), TypeError, "`arguments` must be a mapping of names to values"),
    ("approve by", lambda it: it.approve(by=5), TypeError, "`by` must be text, or None, not 5."),
    ("reject", lambda it: it.reject(None), TypeError, "`reason` must be text, not None."),
    ("reject ids", lambda it: it.reject("no", 5), TypeError, "`ids` must be an id"),
    ("ask", lambda it: it.ask(5), TypeError, "`question` must be text, not 5."),
    ("limits", lambda it: it.set_limits({"run_seconds": 1}), TypeError, "must be Limits(steps=..., cost=...), not {"),
    ("policy", lambda it: it.set_policy(plain), TypeError, "A function that is asked about each call is passed as"),
    ("policy class", lambda it: it.set_policy(AlwaysConfirm), TypeError, "Did you mean AlwaysConfirm(...)?"),
    ("policy none", lambda it: it.set_policy(None), TypeError, "`policy` must be a policy or a check"),
    ("title", lambda it: it.set_title(5), TypeError, "`title` must be text, not 5."),
    ("tags", lambda it: it.set_tags(["a"]), TypeError, "`tags` must be a mapping of text to text, not ['a']."),
    ("tag", lambda it: it.set_tags({"a": 1}), TypeError, "`tags` must be a mapping of text to text"),
    ("secrets", lambda it: it.add_secrets(["s3cret"]), TypeError, "not an object of type list."),
    ("interrupt", lambda it: it.interrupt(5), TypeError, "`reason` must be text, or None, not 5."),
    ("fork", lambda it: it.fork(id=5), TypeError, "`id` must be text, the id of a conversation, or None, not 5."),
]  # fmt: skip


@pytest.mark.parametrize(("use", "error", "words"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
async def test_a_wrong_value_is_refused_by_the_call_and_leaves_nothing_in_the_log(
    use: Call, error: type[Exception], words: str
) -> None:
    async with talk([say("done")]) as opened:
        head = opened.state.head
        with pytest.raises(error) as raised:
            await use(opened)
        assert words in str(raised.value)
        assert "s3cret" not in str(raised.value)
        assert opened.state.head == head


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"workspace": LocalWorkspace}, "Did you mean LocalWorkspace"),
        ({"limit": Limits()}, "did you mean `limits`"),
        ({"store": Path("logs")}, "Pass FileStore('logs')"),
        ({"store": True}, "a store, as FileStore('conversations') or MemoryStore(), or None, not True."),
        ({"confirm": True}, "`confirm` must be a policy, as AlwaysConfirm()"),
        ({"agent": "anthropic/claude"}, "`agent` must be an Agent("),
        ({"id": 5}, "`id` must be text"),
        ({"secrets": ["s3cret"]}, "an object of type list"),
    ],
)
async def test_a_host_refuses_the_same(arguments: dict[str, Any], words: str) -> None:
    async with Host() as host:
        anything: Any = host
        with pytest.raises(TypeError) as raised:
            await anything.open(**{"agent": agent(), **arguments})
        assert words in str(raised.value)
        assert host.conversations == ()


@pytest.mark.parametrize("missing", ["nowhere", "file"])
async def test_a_workspace_that_is_no_folder_is_named_when_the_conversation_is_entered(
    missing: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PathError, match=f"{missing}'") as raised:
        async with Conversation(agent(), tmp_path / missing):
            pass
    assert "\n" not in str(raised.value)


def test_what_a_newer_version_wrote_is_read_and_kept() -> None:
    limits = Limits.model_validate({"steps": 3, "max_dreams": 7})
    assert (limits.steps, limits.model_dump()["max_dreams"]) == (3, 7)
    assert Usage.model_validate_json('{"requests": 1, "dreams": 2}').model_dump()["dreams"] == 2


def test_a_model_is_named_without_a_keyword() -> None:
    assert LLM("openai/gpt-5", temperature=1) == LLM(model="openai/gpt-5", temperature=1)
