from __future__ import annotations

import pytest
from anyio.lowlevel import checkpoint

from agentcore.events import ActionEvent
from agentcore.security import Approve, Confirm, Reject, read_answer

ACTION = ActionEvent(reply_id="r", tool_name="terminal", arguments={"command": "ls"}, call_id="c")


EDITED, NO = Approve({"command": "ls -a"}, by="ann"), Reject("not on a Friday", by="bob")


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (True, Approve()),
        (False, Reject("The user said no and gave no reason.")),
        (EDITED, EDITED),
        (NO, NO),
    ],
)
def test_yes_no_and_more_to_say_are_answers(answer: object, read: Approve | Reject) -> None:
    assert read_answer(answer, ACTION) == read


@pytest.mark.parametrize("answer", [1, 0, "yes", [], object(), Approve, ActionEvent])
def test_anything_else_approves_nothing(answer: object) -> None:
    with pytest.raises(TypeError, match=r"call of 'terminal' and answered .*Return True, False, Approve\(\.\.\.\)"):
        read_answer(answer, ACTION)
    with pytest.raises(TypeError, match="callback was asked and answered"):
        read_answer(answer)


def test_a_forgotten_return_is_guessed() -> None:
    with pytest.raises(TypeError, match="Does it end without a return"):
        read_answer(None, ACTION)


def test_answers_never_change() -> None:
    with pytest.raises(AttributeError):
        Approve().by = "somebody else"  # type: ignore[misc]


async def test_a_callback_may_answer_in_any_of_these_ways() -> None:
    async def ask(action: ActionEvent) -> bool | Approve | Reject:
        await checkpoint()
        return Reject("too long") if len(str(action.arguments)) > 100 else True

    confirm: Confirm = ask
    assert read_answer(await confirm(ACTION), ACTION) == Approve()
