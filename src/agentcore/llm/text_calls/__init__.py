"""Tool calls in words, for models that were not made to call tools."""

from agentcore.llm.text_calls.model import TextToolCalls as TextToolCalls
