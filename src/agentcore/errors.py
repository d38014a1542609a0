"""Every exception that agentcore raises on purpose.

AgentcoreError
├── StoreError                     the log could not be read or written; the conversation is over
│   ├── ConversationNotFound, ConversationExists
│   ├── ConversationLocked         another process or handle writes it
│   ├── LogDamaged                 damage in the middle of a log; `agentcore log repair` salvages
│   ├── BlobLost                   a large piece of a log is missing, or not what was written
│   ├── LogReadOnly                written by a newer version, in a way this one must not continue
│   └── SeqConflict                an append came after another writer's
├── ConversationError
│   ├── ConversationClosed
│   ├── RunError                   a step raised; `.result` says how far the run came
│   ├── ReentrantCall              run() or close() from a tool, hook or callback: it would wait for itself
│   ├── LimitReached               ask() when a budget is used up; a run that reaches one ends with a result
│   ├── NothingPending             approve(), reject() or answer() with nothing of that id waiting
│   ├── AnswerRefused              (also a ValueError) answer() with what does not fit the question
│   ├── RewindRefused              that seq is not a settled point
│   ├── NotRecorded                resuming needs a part that could not be recorded
│   └── WorkspaceNotRestored       resuming with workspace=None: the recorded one is gone, or can't be made again
├── ModelError                     what a model call can end in, `.retryable` or not
│   ├── AuthenticationError, RateLimited, ContextWindowExceeded, ContentPolicy, BadRequest,
│   ├── MalformedHistory, ModelTimeout, ModelUnavailable, ModelConnectionError
│   ├── StructuredOutputError      what the model answered does not fit the type that was asked for
│   └── ScriptExhausted            a scripted model was asked more often than it has replies
├── InvalidCondensation            (also a ValueError) a condensation changes nothing, or leaves what models do not accept
├── AddressNotAllowed              a log names an address that was not named here: no key is sent there
├── MediaError                     (also a ValueError) a file is nothing that models are shown, or too large
├── SchemaError                    (also a TypeError) a signature or model that a model can't be told of
├── ToolError                      raised by a tool: its text is the answer the model reads
│   ├── ToolArgumentsError         the arguments do not fit the tool
│   ├── QuestionDeclined           ctx.question() without an answer
│   └── MCPCallLost                a call to an MCP server was sent, and no answer came
├── MCPServerError                 an MCP server can't be opened
├── ToolNotFound                   (also a LookupError) a recorded tool or toolset that this program does not have
├── ToolNameTaken                  (also a ValueError) tools of two toolsets, or a tool and one of a toolset, have one name
├── MCPFileError                   (also a ValueError) a file of MCP servers can't be read
├── WorkspaceError
│   ├── WorkspaceNotOpen           used before it was entered, or after it was left
│   ├── PathError                  that path can't be used so; `.reason` says why in a word
│   └── NotARepository             changes were asked for where git keeps none
├── WireError                      a call to a server failed, and it is no error of those above
│   ├── ConnectionLost             the server could not be reached for too long; what it does goes on
│   └── ServerError                the server refused or failed; `.code` says why in a word
│       ├── NotAuthorized          no key, a wrong one, or one without the scope
│       └── TooManyRequests        `.retry_after` says when to try again
├── MissingExtra                   (also an ImportError) an optional part is not installed
└── SecretError, UnsupportedPlatform
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class AgentcoreError(Exception):
    """The root of the tree."""

    outcome_unknown = False
    """True if what was asked may have been done, wholly or in part: a call that fails with it is recorded as unknown."""


class StoreError(AgentcoreError):
    """The log could not be read or written. Nothing that was acknowledged is lost; open the conversation again."""


class ConversationNotFound(StoreError):
    def __init__(self, conversation_id: str, where: str) -> None:
        super().__init__(f"There is no conversation {conversation_id!r} in {where}.")
        self.conversation_id = conversation_id


class ConversationExists(StoreError):
    def __init__(self, conversation_id: str, where: str) -> None:
        super().__init__(f"There is a conversation {conversation_id!r} in {where} already.")
        self.conversation_id = conversation_id


class ConversationLocked(StoreError):
    def __init__(self, conversation_id: str, holder: str) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} is being written by {holder}. "
            "Close it there, or read it without opening it (`agentcore log show`)."
        )
        self.conversation_id = conversation_id
        self.holder = holder


class LogDamaged(StoreError):
    def __init__(self, path: str, line: int, reason: str, repair: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        salvage = f" To salvage {'it' if line == 2 else 'them'}: {repair}" if line > 1 else ""
        super().__init__(f"{path}, line {line}: {reason}. {self.sound}{salvage}")

    @property
    def sound(self) -> str:
        """Which lines are sound, in a sentence."""
        if self.line <= 1:
            return "No line before it is sound: there is nothing to salvage."
        return "Line 1 is sound." if self.line == 2 else f"Lines 1 to {self.line - 1} are sound."


class BlobLost(StoreError):
    def __init__(self, where: str, digest: str, reason: str) -> None:
        super().__init__(f"The blob {digest!r} in {where} {reason}")
        self.digest = digest


class LogReadOnly(StoreError):
    def __init__(self, conversation_id: str, reason: str) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} can be read but not continued: {reason}. "
            "Continue it with the version of agentcore that wrote it, or a newer one."
        )
        self.conversation_id = conversation_id


class SeqConflict(StoreError):
    def __init__(self, conversation_id: str, expected: int, found: int) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} was to be continued at event {expected}, but its log goes on at "
            f"{found}: another writer wrote to it. Open it again."
        )
        self.expected = expected
        self.found = found


class ConversationError(AgentcoreError):
    """A conversation was asked for something it can't do now."""


class ConversationClosed(ConversationError):
    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} is closed. Its state and events can still be read; "
            "to go on, open it again with the same store and id."
        )


class RunError(ConversationError):
    """A step raised. The log has it as a conversation_error event; `error` is what was raised.

    It is the `__cause__` too, unless it is an error of agentcore's own: its sentence says all that its traceback could.
    """

    def __init__(self, message: str, result: Any, error: BaseException) -> None:
        super().__init__(message)
        self.result: Any = result
        """The `RunResult` of the run that failed: status, text so far, usage, error."""
        self.error = error
        """The exception that a step raised."""


class ReentrantCall(ConversationError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}() was called from inside the conversation (a tool, hook or callback): it would wait for itself. There, use "
            "`ctx.send(...)` to add a message, `ctx.interrupt()` to stop the turn, or `ctx.ask(...)` for a side question."
        )


class LimitReached(ConversationError):
    """A budget leaves no room for a side question. A run that reaches one raises nothing: its result has the same code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{detail} The model was not asked.")
        self.code = code
        """The budget: "tokens", "cost", or "cost_unknown" where a price is missing."""


class NothingPending(ConversationError):
    def __init__(self, ids: Sequence[str], pending: Sequence[str], *, what: str = "action", hint: str = "") -> None:
        named = f"{what} {', '.join(map(repr, ids))}" if ids else what
        waiting = f" Waiting: {', '.join(map(repr, pending))}." if pending else ""
        purpose = "approval" if what == "action" else "an answer"
        super().__init__(f"No {named} is waiting for {purpose}.{waiting}{f' {hint}' if hint else ''}")


class AnswerRefused(ConversationError, ValueError):
    """An answer does not fit its question, which goes on waiting."""


class RewindRefused(ConversationError):
    def __init__(self, reason: str, nearest: int | None) -> None:
        hint = f" The nearest point that can be returned to is {nearest}." if nearest is not None else ""
        super().__init__(f"{reason}{hint}")
        self.nearest = nearest
        """The nearest seq that is a settled point, if there is one."""


class NotRecorded(ConversationError):
    def __init__(self, conversation_id: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} can't go on with agent=None: {', '.join(missing)} could not be "
            "recorded. Pass the agent that it was started with."
        )
        self.missing = tuple(missing)


class WorkspaceNotRestored(ConversationError):
    """The workspace that a conversation worked in is gone, or cannot be made again: pass one."""


class ModelError(AgentcoreError):
    """A model call ended without a reply."""

    retryable = False
    """True if the same request may go through later."""

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.status = status
        self.retry_after = retry_after
        """Seconds after which the provider asked to be tried again, where it did."""
        self.request_id = request_id
        """The provider's id of the request, to name when asking its support."""


class AuthenticationError(ModelError):
    """The provider did not accept the key, or there is none."""


class RateLimited(ModelError):
    retryable = True


class ContextWindowExceeded(ModelError):
    """The request is larger than what the model can read."""


class ContentPolicy(ModelError):
    """The provider refused the content."""


class BadRequest(ModelError):
    """The provider did not understand the request. Compare `MalformedHistory`, which is about the messages' order."""


class MalformedHistory(ModelError):
    """The provider refused the order of the messages. Compare `BadRequest`, which is about anything else."""


class ModelTimeout(ModelError):
    retryable = True


class ModelUnavailable(ModelError):
    """The provider answered that it can't answer now (5xx, overloaded)."""

    retryable = True


class ModelConnectionError(ModelError):
    """No answer came: the address is wrong, nothing listens there, or the connection broke."""

    retryable = True

    @property
    def refused(self) -> bool:
        """True if the connection was refused: the machine is there, and nothing listens at that port."""
        behind: list[BaseException] = [self]
        for error in behind:  # which grows as their causes are found
            if isinstance(error, ConnectionRefusedError):
                return True
            causes = (error.__cause__, error.__context__, *getattr(error, "exceptions", ()))  # a group's are inside it
            behind += [cause for cause in causes if cause is not None and cause not in behind]
        return False


class ScriptExhausted(ModelError):
    def __init__(self, replies: int) -> None:
        super().__init__(
            f"The scripted model has {replies} repl{'y' if replies == 1 else 'ies'} and was asked once more. Add a reply to the script."
        )


class StructuredOutputError(ModelError):
    """An answer does not fit the type that was asked for, and the model did not correct it when it was told."""

    def __init__(self, wanted: str, problems: str, text: str, model: str, usage: Any) -> None:
        super().__init__(
            f"{model} did not answer with a {wanted!r}, also when it was told what is wrong:\n{problems}\n"
            f"It wrote: {text if len(text) <= 2_000 else f'{text[:2_000]}...'}",
            model=model,
        )
        self.problems = problems
        """The problems, a line for each field."""
        self.text = text
        """The whole of what the model wrote."""
        self.usage: Any = usage
        """The `Usage` of both calls."""


class InvalidCondensation(AgentcoreError, ValueError):
    """A condensation changes nothing, or would leave a history that models do not accept."""


class AddressNotAllowed(AgentcoreError):
    """A model from a log is at an address that neither its provider, nor the environment, nor the program names.

    Not `AuthenticationError`, which says that a key was refused: here nothing was sent.
    """

    def __init__(self, model: str, address: str, variable: str) -> None:
        super().__init__(
            f"{model}: the log says that it is at {address}, which was not named here, so nothing is sent there. If the "
            f"address is right, allow it with agentcore.llm.allow_base_url({address!r}), set {variable}, or pass the agent."
        )
        self.model = model
        self.address = address
        """Where the log says that the model is."""


class MediaError(AgentcoreError, ValueError):
    """A file is no picture and no document that models are shown, or it is too large."""


class SchemaError(AgentcoreError, TypeError):
    """A signature or a model can't be described to a language model, or a JSON Schema can't be used to check data."""


class ToolError(AgentcoreError):
    """Raise it in a tool to give the model an answer that says what went wrong and what to do."""


class ToolArgumentsError(ToolError):
    def __init__(self, tool_name: str, problems: Sequence[str], given: str, wanted: str) -> None:
        lines = "\n".join(f"- {problem}" for problem in problems)
        super().__init__(f"The arguments do not fit {tool_name!r}:\n{lines}\nGiven: {given}\nWanted: {wanted}")
        self.tool_name = tool_name
        self.problems = tuple(problems)
        """One sentence per argument that is wrong."""


class QuestionDeclined(ToolError):
    """A question of a running call has no answer: somebody declined, or nobody attends. Uncaught, the model reads it."""


class MCPCallLost(ToolError):
    """A call was sent to an MCP server, and no answer came. Compare `MCPServerError`, which is about the server as a whole."""

    outcome_unknown = True


class MCPServerError(AgentcoreError):
    """An MCP server can't be opened. Compare `MCPCallLost`, which is about one call."""


class ToolNotFound(AgentcoreError, LookupError):
    """A recorded tool or toolset is not here, or can't be made again. Compare `NotRecorded`, which is about what a log does not hold."""

    def __init__(self, tool_name: str, reason: str, *, what: str = "tool") -> None:
        super().__init__(f"The recorded {what} {tool_name!r} can't be used here: {reason}")
        self.tool_name = tool_name


class ToolNameTaken(AgentcoreError, ValueError):
    """Two tools of an agent have one name, and at least one of them is from a toolset."""

    def __init__(self, tool_name: str, first: str, second: str) -> None:
        super().__init__(
            f"{first} and {second} both have a tool called {tool_name!r}: a model could not tell them apart. "
            "Give one of them other names, as with prefixed(toolset, 'other_'), or leave it out with filtered(...)."
        )
        self.tool_name = tool_name


class MCPFileError(AgentcoreError, ValueError):
    """A file of MCP servers is not there, or nothing in it can be understood. A bad entry is not an error: see `MCPFile.problems`."""


class WorkspaceError(AgentcoreError):
    """Something could not be done in the workspace."""


class WorkspaceNotOpen(WorkspaceError):
    def __init__(self, workspace: str) -> None:
        super().__init__(f"{workspace} is not open. Use it inside `async with workspace:`.")


class WorkspaceLost(WorkspaceError):
    """The place where tools acted is gone, or does not answer. A command that ran there may have had its effect."""

    outcome_unknown = True

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """One of "oom" (out of memory), "exited", "removed", "engine" (what runs the box does not answer), "unreachable"
        and "fenced" (a later opening of the conversation has taken it over)."""


class PathError(WorkspaceError):
    """A path of the workspace can't be used in the way that was asked."""

    def __init__(self, path: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        """As it was given."""
        self.reason = reason
        """One of "missing", "is_a_folder", "not_a_folder", "not_a_file" (a device, a pipe, a socket), "denied",
        "too_large", "invalid" and "failed" (anything else, as a full disk)."""


class NotARepository(WorkspaceError):
    def __init__(self, root: str) -> None:
        super().__init__(f"{root!r} is in no git repository, so there are no changes to tell. Run `git init` there.")


class SecretError(AgentcoreError):
    """A secret can't be registered or found."""


class WireError(AgentcoreError):
    """A call to a server failed on the way, or by the server's own rules. Errors of conversations arrive as themselves."""


class ConnectionLost(WireError):
    """The server could not be reached for too long. Conversations there go on; open them again by id."""

    outcome_unknown = True

    def __init__(self, url: str, reason: str, *, reached: bool = True) -> None:
        super().__init__(
            f"The connection to {url} is lost: {reason}. What runs there goes on; open it again by its id."
            if reached
            else f"Cannot reach {url}: {reason}. Is the server running, and is this its address?"
        )
        self.url = url


class ServerError(WireError):
    """A server refused or failed, for a reason that this version has no class for."""

    def __init__(self, detail: str, *, status: int, code: str, request_id: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        """The HTTP status."""
        self.code = code
        """The reason, for programs."""
        self.request_id = request_id
        """The server's id of the request, to find it in its log."""


class NotAuthorized(ServerError):
    """A server did not accept the key, or the key lacks a scope. Compare `AuthenticationError`, a model provider's."""


class TooManyRequests(ServerError):
    """A server's limit is reached. Compare `RateLimited`, a model provider's."""

    def __init__(
        self,
        detail: str,
        *,
        status: int = 429,
        code: str = "too_many_requests",
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail, status=status, code=code, request_id=request_id)
        self.retry_after = retry_after
        """Seconds after which to try again, where the server said so."""


class MissingExtra(AgentcoreError, ImportError):
    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs a part that is not installed: pip install 'agentcore-runtime[{extra}]'")
        self.extra = extra


class UnsupportedPlatform(AgentcoreError):
    def __init__(self, platform: str) -> None:
        super().__init__(
            f"agentcore does not run on {platform}: it needs POSIX processes, terminals and file locks. "
            "Use Linux or macOS, or WSL on Windows."
        )
