"""Messages, their blocks, and the schemas of tools."""

from agentcore.messages.blocks import AudioBlock as AudioBlock
from agentcore.messages.blocks import Block as Block
from agentcore.messages.blocks import DocumentBlock as DocumentBlock
from agentcore.messages.blocks import ImageBlock as ImageBlock
from agentcore.messages.blocks import ProviderBlock as ProviderBlock
from agentcore.messages.blocks import ReasoningBlock as ReasoningBlock
from agentcore.messages.blocks import RedactedThinkingBlock as RedactedThinkingBlock
from agentcore.messages.blocks import RefusalBlock as RefusalBlock
from agentcore.messages.blocks import ResultBlock as ResultBlock
from agentcore.messages.blocks import StoredResultBlock as StoredResultBlock
from agentcore.messages.blocks import TextBlock as TextBlock
from agentcore.messages.blocks import ThinkingBlock as ThinkingBlock
from agentcore.messages.blocks import ToolCallBlock as ToolCallBlock
from agentcore.messages.blocks import ToolResultBlock as ToolResultBlock
from agentcore.messages.blocks import UnknownBlock as UnknownBlock
from agentcore.messages.media import read_media as read_media
from agentcore.messages.message import Citation as Citation
from agentcore.messages.message import Message as Message
from agentcore.messages.message import Role as Role
from agentcore.messages.message import ToolSchema as ToolSchema
