"""The secrets of a conversation: where their values come from, and how they stay out of everything that is kept."""

from agentcore.secrets.leaves import find_masks as find_masks
from agentcore.secrets.leaves import unmask as unmask
from agentcore.secrets.masker import ByteStreamMasker as ByteStreamMasker
from agentcore.secrets.masker import Masker as Masker
from agentcore.secrets.masker import StreamMasker as StreamMasker
from agentcore.secrets.registry import SecretRegistry as SecretRegistry
from agentcore.secrets.registry import SecretSource as SecretSource
