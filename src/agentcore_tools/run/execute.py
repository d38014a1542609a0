"""Running a program to its end."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio

from agentcore.tools import ToolContext
from agentcore.workspace import Process
from agentcore_tools._named import named_secrets
from agentcore_tools._output import TEXT_LIMIT, find_left, left_mark
from agentcore_tools.run.action import RunAction
from agentcore_tools.run.observation import RunObservation, signal_of
from agentcore_tools.run.stream import Stream

__all__ = ["execute", "reconcile"]

_MARK: Final = "AGENTCORE_RUN"
# When all that it started has ended, what that wrote is there to be read.
_READ_ON_SECONDS: Final = 1.0


async def execute(action: RunAction, ctx: ToolContext, *, timeout_seconds: float, keep_bytes: int) -> RunObservation:
    """Run a program, and end what it leaves behind. Cancelling it ends all of that at once."""
    command = action.command
    secrets = await named_secrets(command if isinstance(command, str) else " ".join(command), ctx.secrets)
    given = dict(each.split("=", 1) for each in action.env or ())
    env = {**secrets, **given, _MARK: left_mark(ctx.conversation_id, ctx.action_id)}
    out, err = Stream("stdout", ctx, keep_bytes), Stream("stderr", ctx, keep_bytes)
    began = anyio.current_time()
    async with ctx.workspace.open_process(command, cwd=action.cwd, env=env) as process:
        timed_out = await _run(process, action.stdin, out, err, action.timeout or timeout_seconds)
        code = await process.wait()
    seconds = anyio.current_time() - began
    await out.finish()
    await err.finish()
    half = TEXT_LIMIT // 2
    # One that is short leaves its room to the other.
    room = max(half, TEXT_LIMIT - len(err.text)), max(half, TEXT_LIMIT - len(out.text))
    stdout, stdout_path = await out.shortened(room[0])
    stderr, stderr_path = await err.shortened(room[1])
    return RunObservation(
        stdout=stdout,
        stderr=stderr,
        exit_code=code,
        signal=signal_of(code),
        timed_out=timed_out,
        seconds=round(seconds, 3),
        stdout_path=stdout_path,
        stderr_path=stderr_path,
    )


async def _run(process: Process, stdin: str | None, out: Stream, err: Stream, timeout: float) -> bool:
    """Feed it, read it, and end what is left; say whether it took too long."""
    waiting = anyio.CancelScope()
    async with anyio.create_task_group() as feeding:
        feeding.start_soon(_feed, process, stdin)
        with anyio.CancelScope() as reading:
            async with anyio.create_task_group() as readers:
                readers.start_soon(out.read, process.receive)
                readers.start_soon(err.read, process.receive_stderr)
                waiting.deadline = anyio.current_time() + timeout
                with waiting:
                    await process.wait()
                await process.terminate()
                reading.deadline = anyio.current_time() + _READ_ON_SECONDS
        feeding.cancel_scope.cancel()
    return waiting.cancelled_caught


async def _feed(process: Process, stdin: str | None) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if stdin:
            await process.send(stdin.encode(errors="replace"))
    # Also where it did not want to read all of it, as `head` does not.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.send_eof()


async def reconcile(_action: RunAction, ctx: ToolContext) -> RunObservation | None:
    """Say, after a crash, what still runs of a program, and where its output is.

    None where it can't be told whether anything runs.
    """
    left = await find_left(_MARK, left_mark(ctx.conversation_id, ctx.action_id), ctx.workspace)
    if left is None:
        return None
    folder = await ctx.workspace.private_folder(ctx.conversation_id)
    paths: dict[str, str] = {}
    for name in ("stdout", "stderr"):
        path = f"{folder}/{ctx.action_id}-{name}.txt"
        if await ctx.workspace.stat(path) is not None:
            paths[f"{name}_path"] = path
    return RunObservation(
        stdout=f"[Still running: {left}.]" if left else "",
        problem="cut_off",
        stdout_path=paths.get("stdout_path"),
        stderr_path=paths.get("stderr_path"),
    )
