"""Calls that ask the user."""

from __future__ import annotations

from pydantic import JsonValue

from agentcore.testing import call

ASK = call("ask_user", text="Which port?")
PORT: dict[str, JsonValue] = {"type": "integer", "minimum": 1}
ASK_PORT = call("ask_user", text="Which port?", answer_schema=PORT)
