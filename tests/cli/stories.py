"""Conversations that never were, for the transcripts: each is a list of events, and of deltas that only a live view gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from tests.cli.story import Story

from agentcore.display import (
    ConversationBlock,
    DiffBlock,
    ExcerptBlock,
    MarkdownBlock,
    ProgressBlock,
    TableBlock,
    UnknownDisplay,
)
from agentcore.messages import Message
from agentcore.tools import TextObservation, describe_call, finish_tool
from agentcore_tools import RunObservation, Task, TaskTrackerObservation, TerminalObservation

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b2J[bold]\u202e"
DIFF = "--- /p/a.py\n+++ /p/a.py\n@@ -8,3 +8,4 @@\n x\n-y\n+Y\n+Z\n z\n@@ -99,2 +100,1 @@\n-q\n r\n"
PATCH = (
    "*** Begin Patch\n*** Update File: /p/a\n@@\n-x\n+y\n*** Add File: b\n+*** Add File: no\n*** Delete File: c\n"
    "*** Update File: d\n*** Move to: e\n*** End Patch"
)


def replies(story: Story) -> None:
    """Streaming: pieces that are late, missing, repeated or withdrawn."""
    story.user("Do it.\nAll of it.")
    story.delta("text", "I look ")
    story.delta("text", "at the", 7)
    story.agent("I look at the tests.")
    story.agent("Nothing of this was streamed, and it is much longer than what fits in one line of sixty columns.")
    story.delta("text", "One ")
    story.delta("gap", lost=3)
    story.delta("text", "four ", 14)
    story.agent("One two three four five.")
    story.delta("text", "Hello wor")
    story.delta("reset")
    story.add("retry", attempt=1, error="it broke", delay=8)
    story.delta("text", "Hello there.", attempt=2)
    story.agent("Hello there.")
    story.delta("text", "First.")
    story.reply(("terminal", {"command": "ls"}), text="First.")
    story.add("interrupt", reason="Ctrl-C", partial_text="I was")


def commands(story: Story) -> None:
    """Commands: streamed, long, at the same time, and every status of a terminal and of run."""
    one = story.call("terminal", command="make test", timeout=60)
    story.progress(one, "\ncompiling\nlin")
    story.progress(one, "king\n")
    story.observe(one, TerminalObservation(text="compiling\nlinking\n", exit_code=2, cwd="/p"))
    first, second = story.reply(
        ("terminal", {"command": "cat <<E\nx\nE"}), ("terminal", {"command": "pwd"}), text="Both."
    )
    for each in (first, second):
        story.add("action_started", cause=each)
    story.progress(second, "/p\n")
    story.progress(first, "x\n")
    story.observe(second, TerminalObservation(text="/p\n", exit_code=0))
    story.observe(first, TerminalObservation(text="x\n", exit_code=0))
    long = story.call("terminal", command="seq 60")
    story.progress(long, "".join(f"{number}\n" for number in range(1, 61)))
    story.observe(
        long, TerminalObservation(text="1\n...\n60", exit_code=0, full_output_path="/tmp/a/very/long/path/to/it")
    )
    moving = story.call("terminal", command="pull")
    story.progress(moving, "begin\nweb: 10%\n\x1b[1Aweb: 20%\n\x1b[1Aweb: 90%\nend\n")
    story.observe(moving, TerminalObservation(text="begin\nweb: 90%\nend\n", exit_code=0))
    for observation in (
        TerminalObservation(text="", exit_code=0, cwd="/p"),
        TerminalObservation(text="a", exit_code=2, new_shell=True),
        TerminalObservation(text="a", exit_code=3, shell_ended=True),
        TerminalObservation(text="a", running=True, timed_out="quiet"),
        TerminalObservation(text="a", problem="cut_off"),
        TerminalObservation(text="a", problem="still_running"),
        TerminalObservation(text="a", problem="nothing_running"),
        TerminalObservation(text="a", new_shell=True),
        TerminalObservation(text="a"),
    ):
        story.observe(story.call("terminal", command="x"), observation)
    for observation in (
        RunObservation(stdout="a\n", stderr="b\n", exit_code=137, signal="SIGKILL", seconds=0.1),
        RunObservation(exit_code=143, signal="SIGTERM", timed_out=True, seconds=2.0),
        RunObservation(problem="cut_off"),
        RunObservation(exit_code=0, stdout_path="/o", stderr_path="/e"),
    ):
        story.observe(story.call("run", command=["echo", "it's $HOME", ""], timeout=60), observation)
    for arguments in (
        {"command": "C-c", "is_input": True},
        {"command": " ^d ", "is_input": True},
        {"command": "UP", "is_input": True},
        {"command": "Ada", "is_input": True, "session": "a"},
        {"command": ""},
        {"command": "", "reset": True},
        {"command": "ls", "reset": True},
        {"command": ["ls"]},
    ):
        story.reply(("terminal", arguments))


def files(story: Story) -> None:
    """Files: changes as proposed and as they came out, patches, and what was only read."""
    edit: dict[str, Any] = {"command": "str_replace", "path": "/p/a.py", "old_str": "x = 1\ny", "new_str": "x = 1\nY"}
    story.answer(story.call("file_editor", **edit), "Changed.", DiffBlock(diff=DIFF))
    story.answer(story.call("file_editor", **edit), "Changed.")
    story.answer(story.call("file_editor", **edit), "old_str is not there", is_error=True)
    made = DiffBlock(diff="--- /dev/null\n+++ /p/a\n@@ -0,0 +1,2 @@\n+x\n+y\n")
    story.answer(story.call("file_editor", command="create", path="/p/a", file_text="x\ny\n"), "Created.", made)
    empty = DiffBlock(diff="--- /dev/null\n+++ /p/a\n")
    story.answer(story.call("file_editor", command="create", path="/p/a", file_text=""), "Created a.", empty)
    several = DiffBlock(
        diff="--- /p/a\n+++ /p/a\n@@ -1,2 +1 @@\n-x = 1\n--- y\n+x = 2\n\\ No newline at end of file\n"
        "--- /dev/null\n+++ /p/b\n@@ -0,0 +1,1 @@\n+b\n--- /p/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- /p/c\n+++ /p/d\n"
    )
    story.answer(story.call("apply_patch", patch=PATCH), "Applied.", several)
    look = story.call("read_file", path="/p/a", offset=5)
    story.answer(look, "".join(f"{number}\n" for number in range(1, 31)))
    for name, arguments in (
        ("edit", {"file_path": "/p/a.py", "old_string": "1", "new_string": "2", "expected_replacements": 3}),
        ("write_file", {"file_path": "a", "content": "1\n2\n"}),
        ("apply_patch", {"patch": "".join(f"*** Delete File: {number}\n" for number in range(9))}),
        ("file_editor", {"command": "view", "path": "a", "view_range": [4, -1]}),
        ("file_editor", {"command": "view", "path": "a", "view_range": [4, 9]}),
        ("file_editor", {"command": "insert", "path": "a", "insert_line": 0, "new_str": "x"}),
        ("grep", {"pattern": "a b", "include": "*.py"}),
        ("read_many", {"paths": ["/p/a b", "c"], "everything": True}),
    ):
        story.reply((name, arguments))


class Trip(BaseModel):
    """A result."""

    city: str
    days: list[int]


def blocks(story: Story) -> None:
    """Every other block: lists, tables, excerpts, thoughts, unknown ones, and none."""
    tasks = (Task(title="Look", status="done"), Task(title="Do", notes="with\ncare"))
    plan = story.call("task_tracker", command="plan", task_list=[task.model_dump(mode="json") for task in tasks])
    story.observe(plan, TaskTrackerObservation(command="plan", tasks=tasks))
    story.observe(story.call("think", thought="Hm.\nSo."), TextObservation(text="It is written down."))
    for shown in (
        (MarkdownBlock(text="`3` found", place="heading"), MarkdownBlock(text="They are")),
        (MarkdownBlock(text="plain\nall of it: `/a/path`"),),
        (DiffBlock(path="/p/a", diff=""),),
        (ExcerptBlock(path="/p/a", first=3),),
        (ExcerptBlock(path="/p/a", first=3, text="x\ny"),),
        (TableBlock(columns=("a", "b"), rows=(("longer", "x"), ("y", "z\n"))),),
        (ProgressBlock(label="half", done=0.5),),
        (ConversationBlock(conversation_id="7", title="A look"),),
        (UnknownDisplay(kind="map", text="Ulm"),),
        (UnknownDisplay(kind="map"),),
    ):
        story.answer(story.call("search", query="a b", limit=3, deep=None), "The words.", *shown)
    story.answer(
        story.call("send", to="ada", text="one\ntwo", more="x" * 300),
        content=[
            {"type": "image", "data": "aGk=", "media_type": "image/png"},
            {"type": "document", "data": "aGk" * 4_000, "name": "plan.pdf"},
            {"type": "document", "url": "https://example.org/a.pdf"},
            {"type": "hologram", "x": 1},
        ],
    )
    tool = finish_tool(Trip)
    arguments: dict[str, Any] = {"message": "Done.\n\nAll.", "result": {"city": "Rome", "days": [1, 2]}}
    display = [
        block.model_dump(mode="json") for block in describe_call(tool, tool.parse(arguments), lambda block: block)
    ]
    for outcome in ("fails", "finishes"):
        (finish,) = story.reply(("finish", arguments), display=display)
        story.add("action_started", cause=finish)
        if outcome == "fails":
            story.error(finish, "`result` is missing.")
        else:
            story.answer(finish, "Marked.", MarkdownBlock(text=""), finished=True)


def approvals(story: Story) -> None:
    """Decisions: a check that asks, a person who approves, changes or rejects, a check that denies."""
    remove = {"command": "rm -r build"}
    rules = {"by": "rules", "verdict": "ask", "reason": "It deletes."}
    (asked,) = story.reply(("terminal", remove))
    story.add("action_assessed", cause=asked, verdict="ask", risk="high", parts=[{"by": "tool", "risk": "high"}, rules])
    story.add("conversation_state_update", update={"fact": "status", "status": "waiting_for_confirmation"})
    story.add("action_approved", cause=asked, by="root", source="user")
    story.add("action_started", cause=asked)
    story.observe(asked, TerminalObservation(text="", exit_code=0))
    (changed,) = story.reply(("terminal", remove))
    story.add("action_approved", cause=changed, by="root", arguments={"command": "ls", "timeout": 5}, source="user")
    story.add("action_started", cause=changed)
    story.observe(changed, TerminalObservation(text="a", exit_code=0))
    (rejected,) = story.reply(("terminal", remove))
    reason = "use something else"
    story.add("user_reject", cause=rejected, tool_name="terminal", call_id=rejected, reason=reason, by="root")
    (denied,) = story.reply(("terminal", remove))
    parts = [{"by": "rules", "verdict": "deny", "reason": "Never."}]
    story.add("action_assessed", cause=denied, verdict="deny", parts=parts)
    story.error(denied, "Not allowed: Never.", outcome="not_run")


def questions(story: Story) -> None:
    """Questions: answered, declined, asked by a call that runs, and withdrawn."""
    for outcome, words in (("answered", {"answer": "Adam\nEve"}), ("declined", {"reason": "no time"})):
        (ask,) = story.reply(("ask_user", {"text": "Who?", "options": ["Adam", "Eve"]}))
        asked = story.add("question_asked", cause=ask, text="Who?", options=["Adam", "Eve"])
        story.add("conversation_state_update", update={"fact": "status", "status": "waiting_for_confirmation"})
        story.add("question_answered", cause=ask, question=asked.id, outcome=outcome, by="root", source="user", **words)
        story.answer(ask, "Adam" if outcome == "answered" else "The user declined: no time")
    call = story.call("deploy", to="x")
    asked = story.add("question_asked", cause=call, text="Sure?", live=True, answer_schema={"type": "boolean"})
    story.add("question_answered", cause=call, question=asked.id, outcome="withdrawn", reason="the call ended")
    story.answer(call, "Deployed.")


def failures(story: Story) -> None:
    """Failures: of calls, of the model, of the conversation."""
    (unknown,) = story.reply(("nope", {"x": 1}))
    story.error(unknown, "There is no tool 'nope'. Given: {}", code="unknown_tool", outcome="not_run")
    (wrong,) = story.reply(("grep", {"pattern": "x", "limit": 0}))
    told = "The arguments do not fit 'grep':\n- `limit`: wrong\nGiven: {}\nWanted: pattern (string, required)"
    story.error(wrong, told, code="bad_arguments", outcome="not_run")
    (malformed,) = story.reply(("terminal", {}), malformed='{"command": "ls')
    story.error(malformed, "Not JSON.")
    story.error(story.call("terminal", command="sleep 9"), "Interrupted.", outcome="interrupted")
    story.add("retry", attempt=2, error="overloaded", delay=0, next_model="a/b")
    story.add("conversation_error", code="cost", detail="The conversation has cost $2; its limit is $1.")
    story.add("conversation_state_update", update={"fact": "status", "status": "error", "code": "cost"})


def bookkeeping(story: Story) -> None:
    """The events that no model is shown."""
    tools = [{"name": "terminal"}, {"name": "function", "params": {"import": "m:weather"}}]
    wrapped: Any = {"name": "prefixed", "params": {"toolset": {"name": "github", "params": {}}, "prefix": "x_"}}
    story.add("agent_configured", agent={"llm": {"model": "a/b"}, "tools": tools, "toolsets": [wrapped, 7]})
    story.add("agent_configured", agent={"tools": []}, missing=["the model (M)", "the tool t"])
    parts = {"file:AGENTS.md": "1", "file:docs/style.md": "2", "memory:user": "3"}
    story.add("system_prompt", prompt="Work.", tools=[{"name": "t", "description": "", "parameters": {}}], parts=parts)
    story.add("context_added", name="file:src/AGENTS.md", text="Use tabs.", digest="4")
    story.add("context_added", name="skill:deploy", text="Deploy.", digest="5")
    for fact in (
        {"fact": "status", "status": "stuck", "code": "monologue", "detail": "three times"},
        {"fact": "title", "title": "T"},
        {"fact": "tags", "tags": {"a": "b"}},
        {"fact": "limits", "limits": {"steps": 3, "cost": "1.5"}},
        {"fact": "policy", "policy": {"name": "always_confirm"}},
        {"fact": "secrets", "names": ["KEY"]},
        {"fact": "toolset", "name": "s", "code": "missing", "detail": "it is missing"},
        {"fact": "context", "name": "project files", "code": "left_out", "detail": "GEMINI.md is left out."},
        {"fact": "context", "name": "summary", "code": "condenser_failed", "detail": "It failed with ModelError: no."},
        {"fact": "run_joined", "run": 3},
        {"fact": "from_the_future", "x": 1},
    ):
        story.add("conversation_state_update", update=fact)
    story.user("Work.")
    story.add("message", source="environment", message=Message.user("A note.").model_dump(mode="json"), code="nudge")
    used = {"requests": 1, "input_tokens": 10, "output_tokens": 5, "known_cost": "0.01"}
    story.add("usage", model="m", usage=used, seconds=1.5)
    story.add("usage", model="m", usage={"requests": 1}, purpose="ask")
    story.add("condensation_request")
    story.add(
        "condensation", forgotten=["a", "b"], summary="## Goal\nWork.", reason="soft", condenser="summary",
        tokens_before=120_000, tokens_after=48_000,
    )  # fmt: skip
    story.add("condensation", masked=["c"], condenser="masking", reason="repair")
    story.add("usage", model="m", usage=used, purpose="condense")
    story.add("pause")
    story.add("hook", hook="h", outcome="denied", output="o")
    story.add("from_the_future", x=1)
    story.add(
        "workspace_checkpointed", checkpoint="4b825dc", store="c", files=3, left_out=["film.mp4 (larger than 100 MB)"]
    )
    for error in (None, "The disk is full."):
        story.add("workspace_restored", checkpoint="ev_9", written=2, removed=1, error=error)


def unsafe(story: Story) -> None:
    """Escape sequences, markup and changes of direction in every place that a model or a tool fills."""
    story.user(EVIL)
    story.delta("text", EVIL)
    story.agent(EVIL)
    (first,) = story.reply((f"t{EVIL}", {f"k{EVIL}": EVIL, "lines": f"{EVIL}\n{EVIL}"}), text=EVIL)
    story.add("action_started", cause=first)
    story.progress(first, f"{EVIL}\n")
    story.answer(
        first,
        EVIL,
        MarkdownBlock(text=f"`{EVIL}`\n{EVIL}"),
        MarkdownBlock(text=EVIL, place="heading"),
        ExcerptBlock(path=EVIL, first=1, text=EVIL),
        TableBlock(columns=(EVIL,), rows=((EVIL, EVIL),)),
        UnknownDisplay(kind=f"x{EVIL}"),
        UnknownDisplay(kind="map", text=EVIL),
        DiffBlock(diff=f"-{EVIL}\n+x"),
        is_error=True,
    )
    second = story.call("terminal", command=f"rm -rf ~\rls \x1b[8m{EVIL}")
    story.add("action_assessed", cause=second, verdict="ask", parts=[{"by": EVIL, "verdict": "ask", "reason": EVIL}])
    story.add("action_approved", cause=second, by=EVIL, arguments={"command": EVIL}, source="user")
    story.error(second, EVIL)
    third = story.call("terminal", command="x")
    story.add("user_reject", cause=third, tool_name=EVIL, call_id=third, reason=EVIL, by=EVIL)
    story.reply((EVIL, {}), malformed=EVIL)
    story.add("workspace_opened", workspace=EVIL, spec={"root": EVIL})
    story.add("agent_configured", agent={"llm": {"model": EVIL}, "toolsets": [{"name": EVIL, "params": {}}]})
    for fact in (
        {"fact": "status", "status": "stuck", "code": "monologue", "detail": EVIL},
        {"fact": "title", "title": EVIL},
        {"fact": "tags", "tags": {EVIL: EVIL}},
        {"fact": "toolset", "name": EVIL, "code": "missing", "detail": EVIL},
        {"fact": "context", "name": EVIL, "code": "left_out", "detail": EVIL},
        {"fact": "from_the_future", "x": EVIL},
    ):
        story.add("conversation_state_update", update=fact)
    story.add("context_added", name=f"file:{EVIL}", text=EVIL, digest="1")
    story.add("condensation", summary=EVIL, condenser=EVIL)
    (ask,) = story.reply(("ask_user", {"text": EVIL}))
    asked = story.add("question_asked", cause=ask, text=EVIL, options=[EVIL])
    story.add("question_answered", cause=ask, question=asked.id, outcome="answered", answer=EVIL)
    story.add("retry", attempt=1, error=EVIL, delay=1)
    story.add("message", source="environment", message=Message.user(EVIL).model_dump(mode="json"), code=EVIL)
    story.add("usage", model=EVIL, usage={"requests": 1})
    story.add("hook", hook=EVIL, outcome=EVIL, output=EVIL)
    story.add("interrupt", reason=EVIL, partial_text=EVIL)
    story.add("conversation_error", code=EVIL, detail=EVIL)
    story.add("unknown" + EVIL, x=EVIL)


STORIES: dict[str, Callable[[Story], None]] = {
    tell.__name__: tell
    for tell in (replies, commands, files, blocks, approvals, questions, failures, bookkeeping, unsafe)
}
