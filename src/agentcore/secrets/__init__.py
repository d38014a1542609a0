"""The secrets of a conversation: where their values come from, and how they stay out of everything that is kept."""

from agentcore.secrets.masker import Masker as Masker
from agentcore.secrets.registry import SecretRegistry as SecretRegistry
from agentcore.secrets.registry import SecretSource as SecretSource
from agentcore.secrets.stream import ByteStreamMasker as ByteStreamMasker
from agentcore.secrets.stream import StreamMasker as StreamMasker
from agentcore.secrets.unmask import unmask as unmask
