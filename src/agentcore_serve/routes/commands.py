"""Commands and jobs over HTTP: a route for each row of the wire's table, which the remote link reads too."""

from __future__ import annotations

from contextvars import copy_context
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import anyio
from pydantic import Field, JsonValue, SecretStr, create_model
from starlette.responses import Response

from agentcore.commands import (
    AddSecrets,
    Answer,
    Approve,
    Ask,
    Checkpoint,
    Command,
    Condense,
    Decline,
    Delete,
    Fork,
    Interrupt,
    Job,
    Leave,
    Receipt,
    Reject,
    Run,
    SetAgent,
    SetPolicy,
)
from agentcore.conversation import RunResult
from agentcore.conversation.journal import Attachment
from agentcore.conversation.link import Link
from agentcore.conversation.switch import switch_command
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import as_checks, read_checks
from agentcore.wire.requests import CheckpointInfo, CondenseInfo, ForkInfo, RequestBody, SideAnswer
from agentcore.wire.routes import (
    ACTION_PATHS,
    COMMAND_ROUTES,
    CONVERSATIONS,
    Beside,
    CommandRoute,
    beside_of,
    command_of,
    refuse,
)
from agentcore_serve.asks import ClientAsks
from agentcore_serve.auth.identity import require_scope
from agentcore_serve.routes.dispatch import refusing
from agentcore_serve.routes.table import Call, Route

if TYPE_CHECKING:
    from agentcore_serve.hub import Served

_TAG: Final = "commands"


class RunQuery(RequestBody):
    """How long to wait for a run."""

    wait: Annotated[float, Field(ge=0, le=600)] | None = None
    """Seconds to wait for the result, which is the answer where the run has settled by then (200)."""


async def _carry(call: Call, *, kind: str) -> Any:
    """Carry one command or job."""
    if kind == "delete":
        await call.hub.delete(call.identity, call.params["id"])
        return None
    served = await call.hub.open(call.identity, call.params["id"])
    with served.requested():
        return await _carry_in(call, served, kind)


async def _carry_in(call: Call, served: Served, kind: str) -> Any:
    """Carry a command or job in its conversation, which is open."""
    link = served.conversation.link
    with refusing("body"):
        command: Command | Job = command_of(kind, call.params, call.body, call.identity.key_id, state=link.state)
        beside = beside_of(kind, call.body)
    link.check()
    match command:
        case Run():
            return await _run(call, served, command)
        case Interrupt():
            await link.interrupt(command)
            return _receipt_of(link, command.id)
        case Leave():
            await link.leave(command.waiter)
            return _receipt_of(link, command.id)
        case Ask() | Fork() | Condense() | Checkpoint():
            return await _do_job(call, served, command)
        case Delete():
            raise AssertionError("it was done above")
        case _:
            return await _decide(call, served, command, beside)


async def _do_job(
    call: Call, served: Served, job: Ask | Fork | Condense | Checkpoint
) -> SideAnswer | ForkInfo | CondenseInfo | CheckpointInfo:
    """Do a job; one that is asked for again has the result of the first time."""
    link = served.conversation.link
    match job:
        case Ask():
            text = cast("str", await served.jobs.do(job.id, lambda: link.job(job)))
            return SideAnswer(text=text, seq=link.state.head)
        case Fork():
            forked = await served.jobs.do(job.id, lambda: call.hub.fork(call.identity, served, job))
            return ForkInfo(conversation=cast("str", forked))
        case Condense():
            return CondenseInfo(seq=cast("int | None", await served.jobs.do(job.id, lambda: link.job(job))))
        case Checkpoint():
            return CheckpointInfo(seq=cast("int", await served.jobs.do(job.id, lambda: link.job(job))))


async def _decide(call: Call, served: Served, command: Command, beside: Beside) -> Receipt:
    """Carry a command that is decided on as it is, with what travels beside it."""
    link = served.conversation.link
    match command:
        case SetPolicy():
            with refusing("body"):
                checks = read_checks(command.policy)
                if checks is None:
                    raise refuse("policy", "There is no such policy here.")
            return await link.execute(command, Attachment(checks=as_checks(checks)))
        case SetAgent():
            return await _set_agent(call, served, command, beside)
        case AddSecrets():
            return await _add_secrets(call, served, command, beside)
        case Approve() | Answer() | Decline() | Reject():
            # A yes goes on with the work, and so does a call whose question is declined.
            begins = not isinstance(command, Reject) or any(question.resumes for question in link.state.questions)
            if begins and link.state.receipt(command.id) is None:
                call.hub.admit_run(served)
            return await link.execute(command)
        case _:
            return await link.execute(command)


async def _run(call: Call, served: Served, command: Run) -> Any:
    """Begin or join a run. The one who asked for it may go: nobody else's leaving interrupts it then."""
    link = served.conversation.link
    if link.state.receipt(command.id) is None:
        call.hub.admit_run(served)
    run = link.begin_run(command, copy_context())
    receipt = await run.recorded()
    query = cast("RunQuery", call.query)
    if query.wait is not None:
        with anyio.move_on_after(query.wait):
            await run.wait()
        if run.result is not None:
            return Response(run.outcome().model_dump_json(), media_type="application/json")
    return receipt


def _receipt_of(link: Link, command_id: str) -> Receipt:
    return link.state.receipt(command_id) or Receipt(seq=link.state.head, run=link.state.run.seq)


async def _set_agent(call: Call, served: Served, command: SetAgent, beside: Beside) -> Receipt:
    link = served.conversation.link
    if link.state.receipt(command.id) is not None:
        return await link.execute(command)
    if beside.profile is not None:
        agent = await call.hub.agent(beside.profile)
    else:
        require_scope(call.identity, "agents")
        agent = await call.hub.own_agent(served, command.agent, beside.model_key)
    made, attachment = switch_command(agent, link.state)
    receipt = await link.execute(made.model_copy(update={"id": command.id, "by": command.by}), attachment)
    if beside.profile is not None:
        await call.hub.agent_was_set(served, beside.profile)
    else:
        await call.hub.cut_off.continue_one(served.id)  # it may have waited for the key of this one
    return receipt


async def _add_secrets(call: Call, served: Served, command: AddSecrets, beside: Beside) -> Receipt:
    sources: dict[str, SecretSource] = {name: value.get_secret_value() for name, value in beside.secrets.items()}
    for name in command.names:
        if name not in sources:
            sources[name] = cast("ClientAsks", served.parts.asks).secret(name)
    SecretRegistry(sources)  # refuses all of them where one can't be used
    call.hub.hold_secrets(served, beside.secrets)
    return await served.conversation.link.execute(command, Attachment(secrets=sources))


async def _interrupt_call(call: Call) -> bool:
    served = await call.hub.open(call.identity, call.params["id"])
    with served.requested():
        return await served.conversation.link.interrupt_call(call.params["action"])


_ANSWERS: Final = {
    "ask": SideAnswer,
    "fork": ForkInfo,
    "condense": CondenseInfo,
    "checkpoint": CheckpointInfo,
    "delete": None,
}
_SUMMARIES: Final = {
    "send": "Send a message. It starts nothing.",
    "run": "Begin a run, or join the one that works. It goes on when its client leaves.",
    "pause": "Stop at the end of the step.",
    "interrupt": "Stop the run at once.",
    "leave": "Wait no longer for a run; the last one that leaves interrupts it.",
    "approve": "Approve actions that wait: all of them without ids.",
    "reject": "Reject actions that wait: all of them without ids.",
    "answer": "Answer a question.",
    "decline": "Leave a question unanswered.",
    "rewind": "Go on from an earlier point, with the files as they were then where that is asked for.",
    "set_agent": "Let another agent work from the next step on.",
    "set_limits": "Set the limits.",
    "set_policy": "Set the policy that decides which actions wait.",
    "set_title": "Set the title.",
    "set_tags": "Set the tags.",
    "add_secrets": "Register secrets.",
    "ask": "Ask the model a side question, which leaves no trace.",
    "fork": "Copy the branch into a new conversation.",
    "condense": "Shorten the history that the model is shown.",
    "checkpoint": "Save the files of the workspace.",
    "delete": "Delete the conversation and its log.",
}


@cache
def _body_of(route: CommandRoute, *, without: tuple[str, ...] = ()) -> Any:
    """Return the model that describes the body of a command, for the document."""
    left_out = {"kind", "by", *route.in_path, *without}
    fields: dict[str, Any] = {}
    for name, field in route.value.model_fields.items():
        if name in left_out:
            continue
        needed = field.is_required() and not (name == "ids" or (route.kind, name) == ("interrupt", "run"))
        fields[name] = (
            (field.annotation, field) if needed or not field.is_required() else (field.annotation | None, None)
        )
    if route.kind in ("send", "run"):
        fields["message"] = (route.value.model_fields["message"].annotation | None, None)
        fields["text"] = (str | None, None)
    elif route.kind == "add_secrets":
        fields["names"] = (tuple[str, ...], ())
        fields["secrets"] = (dict[str, SecretStr], {})
    elif route.kind == "set_agent":
        fields["agent"] = (dict[str, JsonValue] | None, None)
        fields["profile"] = (str | None, None)
        fields["model_key"] = (SecretStr | None, None)
    name = f"{route.value.__name__}{'One' if without else ''}"
    return create_model(name, __base__=RequestBody, __doc__=_SUMMARIES[route.kind], **fields)


def _route(command: CommandRoute) -> Route:
    kind = command.kind
    return Route(
        command.method,
        CONVERSATIONS + "/{id}" + command.path,
        partial(_carry, kind=kind),
        command.scope,
        body=None if kind == "delete" else _body_of(command),
        answer=_ANSWERS.get(kind, Receipt),
        status=202 if kind == "run" else 200,
        summary=_SUMMARIES[kind],
        query=RunQuery if kind == "run" else None,
        plain=True,
        also=((200, RunResult),) if kind == "run" else (),
        tag=_TAG,
    )


def command_routes() -> list[Route]:
    """Return the routes of all commands and jobs, and of those on one action."""
    routes = [_route(command) for command in COMMAND_ROUTES.values()]
    for kind, path in ACTION_PATHS.items():
        command = COMMAND_ROUTES[kind]
        routes.append(
            _route(command)._replace(
                path=CONVERSATIONS + "/{id}" + path,
                body=_body_of(command, without=("ids", "all_that_wait")),
                summary=_SUMMARIES[kind].replace("actions that wait: all of them without ids", "one action"),
            )
        )
    routes.append(
        Route(
            "POST",
            CONVERSATIONS + "/{id}/actions/{action}/interrupt",
            _interrupt_call,
            "run",
            answer=bool,
            summary="Stop one call that runs; true if it ran.",
            tag=_TAG,
        )
    )
    return routes
