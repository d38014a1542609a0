"""How a call of a tool and its answer are shown to people: blocks that the tool makes and that any program can draw."""

from agentcore.display.blocks import CommandBlock as CommandBlock
from agentcore.display.blocks import ConversationBlock as ConversationBlock
from agentcore.display.blocks import DiffBlock as DiffBlock
from agentcore.display.blocks import DisplayBlock as DisplayBlock
from agentcore.display.blocks import DisplayImage as DisplayImage
from agentcore.display.blocks import DisplayTask as DisplayTask
from agentcore.display.blocks import ExcerptBlock as ExcerptBlock
from agentcore.display.blocks import MarkdownBlock as MarkdownBlock
from agentcore.display.blocks import ProgressBlock as ProgressBlock
from agentcore.display.blocks import TableBlock as TableBlock
from agentcore.display.blocks import TasksBlock as TasksBlock
from agentcore.display.blocks import UnknownDisplay as UnknownDisplay
from agentcore.display.markdown import code_span as code_span
from agentcore.display.markdown import split_code_spans as split_code_spans
from agentcore.display.plain import plain_text as plain_text
