"""A call that the server answers with questions (`input_required`, since 2026): what is known so far, as a log can hold it.

The call is made again with the answers and the server's opaque state, hours later and from another process if need be.
"""

from __future__ import annotations

from typing import Any, Final, Self

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from agentcore._text import Mask
from agentcore._value import Value
from agentcore.errors import ToolError
from agentcore.mcp.questions import question_of, result_of
from agentcore.secrets.leaves import LeafMap
from agentcore.tools import InputRequired, Question, Resumption

_PARAMS: TypeAdapter[types.ElicitRequestParams] = TypeAdapter(types.ElicitRequestParams)

_LARGEST: Final = 100_000
"""Characters of JSON that a round of questions may have, with the server's state."""


class Round(Value):
    """One round of questions of a call, and the answers to them so far."""

    server: str
    state: str | None = None
    """The state that the server wants back as it is."""
    questions: dict[str, dict[str, Any]] = {}
    """The questions to a person that have no answer yet, by the server's keys for them."""
    answers: dict[str, dict[str, Any]] = {}

    @classmethod
    def begin(cls, server: str, result: types.InputRequiredResult, roots: types.ListRootsResult, mask: Mask) -> Self:
        """Take what a server asks, without secrets. Where it may work is answered at once.

        Raises:
            ToolError: It asks for what it does not get.
        """
        questions: dict[str, dict[str, Any]] = {}
        answers: dict[str, dict[str, Any]] = {}
        # All of it is recorded with each of its questions.
        size = len(result.model_dump_json())
        if size > _LARGEST:
            raise ToolError(
                f"The MCP server {server!r} asks too much: {size:,} characters, and {_LARGEST:,} are the most."
            )
        for key, request in (result.input_requests or {}).items():
            if isinstance(request, types.ElicitRequest):
                questions[key] = LeafMap(mask)(_plain(request.params))
            elif isinstance(request, types.ListRootsRequest):
                answers[key] = _plain(roots)
            else:
                raise ToolError(
                    f"The MCP server {server!r} wants to use the model before it answers, which it does not get."
                )
        return cls(server=server, state=result.request_state, questions=questions, answers=answers)

    @classmethod
    def resumed(cls, resumption: Resumption) -> Self:
        """Take what was noted with a question, and the answer to it.

        Raises:
            ToolError: It is not what was noted.
        """
        try:
            before = cls.model_validate(resumption.note)
            key = next(iter(before.questions))
            params = _PARAMS.validate_python(before.questions[key], by_name=False)
        except (ValidationError, StopIteration):
            raise ToolError("What was noted of this call can't be read any more.") from None
        if resumption.declined is not None:
            answer = types.ElicitResult(action="decline")
        else:
            answer = result_of(params, resumption.answer)
        left = {other: asked for other, asked in before.questions.items() if other != key}
        return before.model_copy(update={"questions": left, "answers": {**before.answers, key: _plain(answer)}})

    def ask_next(self, mask: Mask) -> None:
        """Ask the next question, if one is left.

        Raises:
            InputRequired: One is.
            ToolError: It can't be asked.
        """
        for asked in self.questions.values():
            try:
                params = _PARAMS.validate_python(asked, by_name=False)
                text, schema, options = question_of(params, self.server, mask)
                raise InputRequired(
                    Question(text=text, answer_schema=schema, options=options), self.model_dump(mode="json")
                )
            except ValueError as error:
                raise ToolError(f"The MCP server {self.server!r} asks what can't be asked: {error}") from None

    def responses(self) -> types.InputResponses | None:
        """Return the answers as the server wants them."""
        return _RESPONSES.validate_python(self.answers, by_name=False) if self.answers else None


_RESPONSES: TypeAdapter[types.InputResponses] = TypeAdapter(types.InputResponses)


def _plain(value: types.Result | types.RequestParams) -> dict[str, Any]:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)
