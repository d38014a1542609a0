"""A question: the agent asks, the conversation waits, and the answer comes after a restart.

Run it: python examples/09_ask_user.py. It needs no key and no network: a scripted model plays the agent's part.

What to look at:
- `ask_user` never runs: `run` returns with the question, and nothing waits in memory;
- `answer` is checked against the question's options or schema; what does not fit is refused and nothing is lost;
- the answer is what the model reads as the result of its call.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

import anyio

from agentcore import Agent, Conversation, FileStore, ask_user
from agentcore.errors import AnswerRefused
from agentcore.testing import ScriptedLLM, call, say


async def main() -> None:
    model = ScriptedLLM(
        [call("ask_user", text="Which database?", options=["sqlite", "postgres"]), say("Using sqlite.")]
    )
    agent = Agent(llm=model, tools=[ask_user])
    with TemporaryDirectory() as folder:
        store = FileStore(folder)
        async with Conversation(agent, id="a", store=store) as conversation:
            (question,) = (await conversation.run("Set the project up.")).questions
            print(question.text, question.options)
        async with Conversation(agent, id="a", store=store) as conversation:  # after a restart
            (question,) = conversation.state.questions
            try:
                await conversation.answer(question.id, "oracle")
            except AnswerRefused as error:
                print(error)
            await conversation.answer(question.id, "sqlite", by="ada")
            print((await conversation.run()).text)


anyio.run(main)
