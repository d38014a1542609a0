"""`agentcore rewind`: going back to an earlier point of a conversation, with its files or without."""

from __future__ import annotations

from agentcore.cli.console import DIM, make_console, print_line
from agentcore.cli.conversations import find_conversation, open_store, shorten_id
from agentcore.cli.failures import UsageError
from agentcore.cli.models import rebuild_agent
from agentcore.cli.settings import Settings
from agentcore.cli.text import count
from agentcore.conversation import Conversation
from agentcore.errors import RewindRefused
from agentcore.events import WorkspaceCheckpointed
from agentcore.record import read_log


async def rewind_conversation(given: str, settings: Settings, *, to: int, files: bool) -> int:
    """Rewind a conversation in the workspace of its log, and return the exit code.

    Raises:
        UsageError: That is not a point to go back to, or there is no checkpoint of the files.
        AgentcoreError: The conversation or its workspace cannot be opened, or the files cannot be brought back.
    """
    store = open_store(settings)
    state = await read_log(store, await find_conversation(store, settings, given))
    agent = rebuild_agent(state, settings, model=None, base_url=None, retries=None)
    console = make_console()
    async with Conversation(agent, id=state.conversation_id, store=store) as conversation:
        before = conversation.state.head
        try:
            await conversation.rewind(to, files=files)
        except RewindRefused as error:
            raise UsageError(str(error)) from None
        restored = conversation.state.checkpoints.last_restored
        saved = [event for event in conversation.state.events[before:] if isinstance(event, WorkspaceCheckpointed)]
    print_line(console, f"rewound to event {to}")
    if files and restored is not None:
        print_line(console, f"{count(restored.written, 'file')} written, {restored.removed} removed")
    if saved:
        again = settings.command(
            f"rewind {await shorten_id(store, state.conversation_id)} --files --to {saved[-1].seq}"
        )
        print_line(console, f"to have the files from before back: {again}", DIM)
    return 0
