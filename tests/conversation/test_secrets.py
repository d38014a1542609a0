"""Secrets: tools get them, nobody else does; the mask is put on once, before anything is kept, shown or sent."""

from __future__ import annotations

import base64
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from agentcore import ActionEvent, AlwaysConfirm, FileStore, MemoryStore, ObservationEvent, ToolContext
from agentcore.assessment import Assessment
from agentcore.errors import BadRequest, RunError, SecretError
from agentcore.events import ConversationErrorEvent, UsageEvent
from agentcore.messages import DocumentBlock, ImageBlock, ToolCallBlock
from agentcore.record import read_log
from agentcore.secrets import SecretSource
from agentcore.security import Approve, CheckContext
from agentcore.testing import ScriptedLLM, ScriptedReply, call, calls, say
from agentcore.tools import ContentObservation, tool
from agentcore_tools import terminal_tool
from talks import change, error_of, events_of, ran, scripted, talk

TOKEN = "tok-93f1-ab/é+x"

SECRETS = {"TOKEN": TOKEN}


async def test_a_tool_gets_what_the_model_wrote_and_the_log_the_name() -> None:
    llm = ScriptedLLM([call("change", name=f"curl -H {TOKEN}"), say(f"I used {TOKEN}")])
    store = FileStore("logs")
    async with talk(llm, change, store=store, secrets=SECRETS) as conversation:
        result = await conversation.run(f"My token is {TOKEN}.")
    assert ran == [f"curl -H {TOKEN}"]
    assert result.text == "I used <secret:TOKEN>"
    (action,) = events_of(conversation, ActionEvent)
    assert action.arguments == {"name": "curl -H <secret:TOKEN>"}
    log = Path(store.folder(conversation.id), "events.jsonl").read_text()
    assert TOKEN not in log
    assert "tok-93f1" not in log
    assert all(TOKEN not in str(message) for request in llm.requests for message in request.messages)
    assert conversation.state.secret_names == ("TOKEN",)


async def test_tools_read_secrets_by_name_and_what_they_print_is_masked() -> None:
    asked: list[str] = []

    async def from_vault() -> str:
        asked.append("vault")
        return TOKEN

    @tool
    async def show(ctx: ToolContext) -> str:
        """Show."""
        value = await ctx.secrets.get("TOKEN")
        return f"plain {value} encoded {base64.b64encode(value.encode()).decode()}"

    async with talk([call("show"), say("done")], show, secrets={"TOKEN": from_vault}) as conversation:
        assert not asked
        await conversation.run("go")
    (answer,) = events_of(conversation, ObservationEvent)
    assert TOKEN not in answer.text
    assert base64.b64encode(TOKEN.encode()).decode()[:12] not in answer.text
    assert answer.text.startswith("plain <secret:TOKEN> encoded <secret:TOKEN")


async def test_spooled_output_is_masked_too() -> None:
    @tool
    async def flood() -> str:
        """Flood."""
        return "x" * 40_000 + TOKEN + "y" * 40_000

    async with talk([call("flood"), say("done")], flood, secrets=SECRETS) as conversation:
        await conversation.run("go")
        (answer,) = events_of(conversation, ObservationEvent)
        path = answer.text.split("Full output: ")[1].split("]")[0]
        whole = (await conversation.workspace.read(path)).decode()
    assert TOKEN not in whole
    assert "<secret:TOKEN>" in whole


async def test_a_secret_that_is_split_over_deltas_never_shows() -> None:
    secret = "abcdefghijklmnopqrstuvwxyz0123456789" * 2
    shown: list[str] = []
    async with anyio.create_task_group() as tasks:
        async with talk([say(f"It is {secret} indeed")], secrets={"LONG": secret}) as conversation:
            deltas = conversation.deltas()

            async def follow() -> None:
                shown.extend([delta.text async for delta in deltas])

            tasks.start_soon(follow)
            await conversation.run("go")
    assert "".join(shown) == "It is <secret:LONG> indeed"


async def test_pictures_and_documents_are_left_alone() -> None:
    data = base64.b64encode(TOKEN.encode() * 20).decode()

    @tool
    async def picture() -> ContentObservation:
        """Look."""
        return ContentObservation(content=(ImageBlock(data=data, media_type="image/png"), DocumentBlock(data=data)))

    async with talk([call("picture"), say("done")], picture, secrets=SECRETS) as conversation:
        await conversation.run("go")
    (answer,) = events_of(conversation, ObservationEvent)
    assert answer.content == (ImageBlock(data=data, media_type="image/png"), DocumentBlock(data=data))


@pytest.mark.parametrize("registered", [True, False])
async def test_an_action_that_waited_through_a_restart_gets_its_secret_back_or_says_what_is_missing(
    registered: bool,
) -> None:
    store = MemoryStore()
    agent = scripted([call("change", name=f"curl {TOKEN}"), say("done")], change)
    async with talk(agent, store=store, id="a", confirm=AlwaysConfirm(), secrets=SECRETS) as before:
        await before.run("go")
    async with talk(agent, store=store, id="a", secrets=SECRETS if registered else None) as after:
        await after.approve()
        assert (await after.run()).text == "done"
    assert ran == ([f"curl {TOKEN}"] if registered else [])
    if not registered:
        assert "TOKEN" in error_of(after).error
        assert error_of(after).outcome == "not_run"


async def test_secrets_can_be_added_if_they_can_be_masked_and_history_stays_as_it_was() -> None:
    with pytest.raises(SecretError, match="PIN"):
        async with talk([], secrets={"PIN": "12345"}):
            pass
    async with talk([say(f"{TOKEN} one"), say(f"{TOKEN} two")]) as conversation:
        assert (await conversation.run("go")).text == f"{TOKEN} one"
        await conversation.add_secrets({"TOKEN": TOKEN})
        assert (await conversation.run("go")).text == "<secret:TOKEN> two"
        assert TOKEN in str(conversation.state.events)


QUOTED = 'it\'s a "pass\\word"\n'
"""A value that `repr` writes in another way, in either kind of quotes."""


@tool
async def look_up() -> str:
    """Ask a dictionary for what it has not."""
    raise KeyError(QUOTED)


@tool
async def show() -> str:
    """Print a dictionary."""
    return str({"token": QUOTED, "longer": f"x{QUOTED}y"})


async def test_what_python_writes_of_a_value_is_masked_in_events_and_in_the_log_of_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "agentcore")
    agent = scripted([call("look_up"), call("show"), say("done")], look_up, show)
    store = FileStore("logs")
    async with talk(agent, store=store, secrets={"PASSWORD": QUOTED}) as conversation:
        await conversation.run("go")
        printed = str(events_of(conversation, ObservationEvent)[0].content)
    assert "KeyError: '<secret:PASSWORD>'" in error_of(conversation).error
    assert "<secret:PASSWORD>" in printed
    assert "pass" not in printed
    logged = next(record.getMessage() for record in caplog.records if "tool raised" in record.getMessage())
    assert "KeyError('<secret:PASSWORD>')" in logged
    assert not any("pass" in record.getMessage() for record in caplog.records)


async def test_a_model_s_error_is_masked_in_the_log_and_in_what_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "agentcore")
    llm = ScriptedLLM([BadRequest(f"not a key: {QUOTED!r}, {TOKEN}")])
    async with talk(llm, secrets={"PASSWORD": QUOTED, "TOKEN": TOKEN}) as conversation:
        with pytest.raises(RunError) as caught:
            await conversation.run("go")
        (failed,) = events_of(conversation, ConversationErrorEvent)
        assert failed.detail == "not a key: '<secret:PASSWORD>', <secret:TOKEN>"
        assert "<secret:TOKEN>" in str(caught.value)
        assert TOKEN not in str(caught.value)
        assert not any(TOKEN in record.getMessage() for record in caplog.records)


async def test_a_prompt_is_masked_from_the_step_after_its_secret_became_known() -> None:
    @tool(resources=())
    async def ask(ctx: ToolContext) -> str:
        """Ask for the token."""
        return await ctx.secrets.get("TOKEN")

    agent = scripted([call("ask"), say("done")], ask, system_prompt=f"Use {TOKEN}.")
    async with talk(agent, secrets={"TOKEN": lambda: TOKEN}) as conversation:
        await conversation.run("go")
        assert conversation.state.prompt is not None
        assert conversation.state.prompt.prompt.startswith("Use <secret:TOKEN>.")


@pytest.mark.parametrize(("restarted", "asked"), [(False, False), (True, False), (True, True)])
async def test_changed_arguments_that_say_the_masks_that_people_are_shown_get_the_values(
    restarted: bool, asked: bool
) -> None:
    async def confirm(event: ActionEvent) -> Approve:
        return Approve({"name": f"{event.arguments['name']} -v"})

    store = MemoryStore()
    agent = scripted([call("change", name=f"curl {TOKEN}"), say("done")], change)
    async with talk(agent, store=store, id="a", secrets=SECRETS, confirm=AlwaysConfirm()) as before:
        (pending,) = (await before.run("go")).pending
        changed: dict[str, JsonValue] = {"name": f"{pending.arguments['name']} -v"}
        if not restarted:
            await before.approve(arguments=changed)
            await before.run()
    if restarted:
        decides = confirm if asked else None
        async with talk(agent, store=store, id="a", secrets=SECRETS, confirm=decides) as after:
            if not asked:
                await after.approve(arguments=changed)
            await after.run()
    assert ran == [f"curl {TOKEN} -v"]
    assert TOKEN not in str((await read_log(store, "a")).events)


async def test_changed_arguments_are_run_as_they_were_when_they_were_approved() -> None:
    got: list[list[str]] = []

    @tool(resources=())
    async def tag(tags: list[str]) -> str:
        """Keep tags."""
        got.append(tags)
        return ""

    async with talk([call("tag", tags=[]), say("done")], tag, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        tags: list[JsonValue] = ["a"]
        await conversation.approve(arguments={"tags": tags})
        tags.append("too late")
        await conversation.run()
    assert got == [["a"]]


@tool
async def report(ctx: ToolContext) -> str:
    """Report what it uses."""
    value = await ctx.secrets.get("TOKEN")
    await ctx.progress(f"using {value[:8]}")
    await ctx.progress(f"{value[8:]} now\n")
    return "ok"


@pytest.mark.parametrize("used", [call("report"), call("terminal", command="echo using $TOKEN now; sleep 0.3")])
async def test_progress_is_masked_in_the_call_that_first_asks_for_the_value_of_a_function(used: ScriptedReply) -> None:
    agent = scripted([used, say("done")], report, terminal_tool())
    async with talk(agent, secrets={"TOKEN": lambda: TOKEN}) as conversation:
        deltas = conversation.deltas()
        await conversation.run("go")
    shown = "".join([delta.text async for delta in deltas if delta.type == "progress"])
    assert "using <secret:TOKEN> now\n" in shown


async def test_the_model_s_own_words_for_a_tool_and_for_why_it_stopped_are_masked() -> None:
    reply = calls(ToolCallBlock(id="c", name=TOKEN, arguments={}), stop_reason=f"like {TOKEN}")
    async with talk([reply, say("done")], secrets=SECRETS) as conversation:
        deltas = conversation.deltas()
        await conversation.run("go")
        usages = events_of(conversation, UsageEvent)
    assert [delta.tool_name async for delta in deltas if delta.tool_name] == ["<secret:TOKEN>"]
    assert usages[0].stop_reason == "like <secret:TOKEN>"


@tool(resources=())
async def post(body: str, note: str = "") -> str:
    """Post to a page."""
    ran.append(f"{body} {note}".strip())
    return ""


TYPED = "<secret:TOKEN>"


@pytest.mark.parametrize("secret", ["text", "a function that was not asked"])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("edited", [False, True])
async def test_a_mask_that_the_model_wrote_itself_never_becomes_the_value(
    secret: str, restarted: bool, edited: bool
) -> None:
    secrets: dict[str, SecretSource] = {"TOKEN": TOKEN if secret == "text" else lambda: TOKEN}
    arguments: dict[str, JsonValue] | None = {"body": TYPED, "note": "edited"} if edited else None
    store = MemoryStore()
    agent = scripted([call("post", body=TYPED), say("done")], post)
    async with talk(agent, store=store, id="a", confirm=AlwaysConfirm(), secrets=secrets) as before:
        await before.run("read this page, and do as it says")
        if not restarted:
            await before.approve(arguments=arguments)
            await before.run()
    if restarted:
        async with talk(agent, store=store, id="a", secrets=secrets) as after:
            await after.approve(arguments=arguments)
            await after.run()
    assert ran == [f"{TYPED} edited" if edited else TYPED]


async def test_a_mask_that_the_model_wrote_and_one_in_place_of_a_value_are_told_apart() -> None:
    store = MemoryStore()
    agent = scripted([call("post", body=TYPED, note=TOKEN), say("done")], post)
    async with talk(agent, store=store, id="a", confirm=AlwaysConfirm(), secrets=SECRETS) as before:
        await before.run("go")
    async with talk(agent, store=store, id="a", secrets=SECRETS) as after:
        await after.approve()
        await after.run()
        assert error_of(after).outcome == "not_run"
    assert ran == []


async def test_a_mask_in_arguments_that_a_check_wrote_stays_as_it_is_after_a_restart() -> None:
    class Rewrite:
        name = "rewrite"
        timeout = 1.0

        def assess(self, action: ActionEvent, context: CheckContext) -> Assessment:
            return Assessment(verdict="ask", arguments={"body": f"{TYPED}!"})

    store = MemoryStore()
    agent = scripted([call("post", body="a"), say("done")], post)
    async with talk(agent, store=store, id="a", confirm=Rewrite(), secrets=SECRETS) as before:
        await before.run("go")
    async with talk(agent, store=store, id="a", secrets=SECRETS) as after:
        await after.approve()
        await after.run()
    assert ran == [f"{TYPED}!"]
