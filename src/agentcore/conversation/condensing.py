"""Making the history shorter: when a condenser is asked, what becomes of its answer, and what follows where it fails.

Above: the stepper, which asks before each step and after a request that was refused, and the handle, for a person.
Below: condensers, which only decide. A condenser that fails ends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from anyio import get_cancelled_exc_class

from agentcore.condense import (
    HARD,
    SOFT,
    Condenser,
    Outline,
    Summary,
    Window,
    ask_condenser,
    record_condenser,
    repair,
)
from agentcore.conversation.ask import ask_metered
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import is_cancelled, masked_repr, safe_str, spurious_cancellation
from agentcore.conversation.guards import mark_running_in
from agentcore.errors import LimitReached
from agentcore.events import (
    Condensation,
    CondensationReason,
    ContextNotice,
    ConversationStateUpdateEvent,
    Event,
)
from agentcore.llm import Model, Reply, model_features
from agentcore.logs import get_logger
from agentcore.messages import Message

_log = get_logger(__name__)

_UNKNOWN_WINDOW: Final = 100_000
_UNKNOWN_OUTPUT: Final = 16_384
_LEAST_FREED: Final = 0.1
"""The part of the history that a cut has to free: each one costs the provider's cache."""
_PATIENCE: Final = 0.05
"""The part of the room by which the history grows before a condenser that failed is asked again."""
_PAUSE: Final = 0.01
"""The same for one that left a large history as it is: looking at all of it at each step would cost more than the step."""


async def before_step(core: Core) -> bool:
    """Ask the agent's condenser; return whether the history was cut."""
    for step_ended in core.history.waiting:
        step_ended.set()
    condenser = core.agent.condenser
    if condenser is None:
        return False
    outline = await _outline(core, "soft")
    if outline.used < core.history.asked_again_at:
        return False
    if outline.used >= HARD * outline.room:
        outline = await _outline(core, "hard")
    return await _shorten(core, condenser, outline)


async def after_rejection(core: Core) -> bool:
    """Make a history shorter that a provider has refused as too large; return whether it was cut."""
    assert core.agent.condenser is not None
    outline = await _outline(core, "hard")
    # It is larger than was thought, or the window is smaller.
    core.history.room = min(core.history.room, outline.used)
    return await _shorten(core, core.agent.condenser, await _outline(core, "hard"))


async def repair_history(core: Core) -> bool:
    """Forget all that can be forgotten of a history that a provider refused as malformed, once; return whether it was cut."""
    cut, step = core.state.last_cut, core.state.last_step
    if cut is not None and cut.reason == "repair" and (step is None or step.seq < cut.seq):
        return False
    outline = await _outline(core, "repair")
    condensation = repair(outline)
    return condensation is not None and await _write(core, outline, condensation) is not None


async def condense(core: Core) -> Condensation | None:
    """Make the history shorter because somebody asks: at once, or at the end of the step that is under way."""
    return await core.jobs.do(lambda: _asked(core), name="condense", finish=False)


async def _asked(core: Core) -> Condensation | None:
    step_ended = anyio.Event()
    core.history.waiting.append(step_ended)
    try:
        while core.turn is not None and not step_ended.is_set():
            await core.head_signal.wait()
    finally:
        core.history.waiting.remove(step_ended)
    outline = await _outline(core, "asked")
    condenser = core.agent.condenser or Summary()
    with anyio.fail_after(core.state.limits.step_seconds), mark_running_in(core.state.conversation_id):
        condensation = await ask_condenser(condenser, outline)
    if condensation is not None:
        outline.check(condensation)
    if condensation is None or not _is_worth_it(outline, condensation):
        return None
    return await _write(core, outline, condensation, condenser)


async def _outline(core: Core, reason: CondensationReason) -> Outline:
    core.view.update(core.state)
    await _find_room(core)

    async def ask(messages: Sequence[Message], llm: Model | None) -> Reply:
        return await ask_metered(core, messages, purpose="condense", llm=llm)

    return Outline(
        reason=reason,
        room=core.history.room,
        state=core.state,
        epoch=core.state.view_epoch,
        sizes=core.history.measure.request(core.state, core.view),
        head=core.view.prompt,
        ask_model=ask,
        can_recall=any(tool.name == "recall" for tool in core.agent.own_tools),
    )


async def _find_room(core: Core) -> None:
    model = core.agent.llm
    if model is core.history.model:
        return
    features = await model_features(model)
    window = (features and features.context_window) or _UNKNOWN_WINDOW
    output: int = (
        getattr(model, "max_output_tokens", None) or (features and features.max_output_tokens) or _UNKNOWN_OUTPUT
    )
    core.history.room = window - min(output, window // 2)
    core.history.model = model


async def _shorten(core: Core, condenser: Condenser, outline: Outline) -> bool:
    """Have the condenser shorten the history, and where it has to be and that fails, forget what is oldest."""
    condensation, problem = await _ask(core, condenser, outline)
    if condensation is not None:
        core.history.asked_again_at, core.history.is_failing = 0, False
        return await _write(core, outline, condensation, condenser) is not None
    hard = outline.reason == "hard"
    if problem is None and not hard:
        core.history.is_failing = False
        if outline.used >= SOFT * outline.room:  # below, an answer costs next to nothing
            core.history.asked_again_at = max(core.history.asked_again_at, outline.used + round(_PAUSE * outline.room))
        return False
    core.history.asked_again_at = outline.used + round(_PATIENCE * outline.room)
    problem = problem or "It left the history as it is, and that is too large."
    window = Window()
    fallback = await window.condense(outline) if hard else None
    if fallback is not None and _is_worth_it(outline, fallback):
        notice = _notice(condenser, f"{problem} The oldest part of the history was forgotten instead.")
        if await _write(core, outline, fallback, window, notice) is not None:
            core.history.asked_again_at = 0  # it is of the history before
            return True
    if not core.history.is_failing:
        stays = "Nothing else can be forgotten: the history stays" if hard else "The history stays"
        await core.journal.write(_notice(condenser, f"{problem} {stays} as it is."))
        core.history.is_failing = True
    return False


def _notice(condenser: Condenser, detail: str) -> Event:
    notice = ContextNotice(name=_name_of(condenser), code="condenser_failed", detail=detail)
    return ConversationStateUpdateEvent(update=notice)


async def _ask(core: Core, condenser: Condenser, outline: Outline) -> tuple[Condensation | None, str | None]:
    """Return the condenser's answer, or the sentence that says how it failed."""
    seconds = core.state.limits.step_seconds
    condensation: Condensation | None = None
    try:
        with anyio.move_on_after(seconds) as scope, mark_running_in(core.state.conversation_id):
            condensation = await ask_condenser(condenser, outline)
        if scope.cancelled_caught:
            return None, f"It took longer than the {seconds:g} s of a step."
        if condensation is None:
            return None, None
        outline.check(condensation)
    except LimitReached as error:
        return None, str(error)
    except get_cancelled_exc_class() as error:  # noqa: ASYNC103 only a cancellation of a scope is raised again
        if await is_cancelled():  # noqa: ASYNC102 asking does not wait
            raise
        return None, _failure(core, condenser, spurious_cancellation("It", error))  # noqa: ASYNC104 it was not a cancellation
    except Exception as error:
        return None, _failure(core, condenser, error)
    if not _is_worth_it(outline, condensation):
        # Not at once again: its answer may have cost a model call.
        core.history.asked_again_at = outline.used + round(_PATIENCE * outline.room)
        return None, "Its answer frees less than a tenth of the history." if outline.reason == "hard" else None
    return condensation, None


async def _write(
    core: Core,
    outline: Outline,
    condensation: Condensation,
    condenser: Condenser | None = None,
    *before: Event,
) -> Condensation | None:
    """Keep a condensation, unless the branch moved or was cut meanwhile, and return it as the log has it."""
    epoch = outline.epoch
    if condenser is not None:
        condensation = condensation.model_copy(update={"condenser": _name_of(condenser)})
    kept = await core.journal.write(*before, condensation, condition=lambda state: state.view_epoch == epoch)
    return next((event for event in kept or () if isinstance(event, Condensation)), None)


def _is_worth_it(outline: Outline, condensation: Condensation) -> bool:
    return outline.freed_by(condensation) >= _LEAST_FREED * outline.used


def _failure(core: Core, condenser: Condenser, error: Exception) -> str:
    _log.warning("condenser failed", condenser=_name_of(condenser), error=masked_repr(core.secrets, error))
    return f"It failed with {type(error).__name__}: {safe_str(error)}"


def _name_of(condenser: Condenser) -> str:
    try:
        spec = record_condenser(condenser)
    except Exception:
        spec = None  # it is named where it has failed: another failure helps nobody
    return type(condenser).__name__ if spec is None else spec.name
