"""Patches: several changes to several files in one text, all of them made or none."""

from agentcore_tools.apply_patch.action import ApplyPatchAction as ApplyPatchAction
from agentcore_tools.apply_patch.observation import ApplyPatchObservation as ApplyPatchObservation
from agentcore_tools.apply_patch.observation import PatchedFile as PatchedFile
from agentcore_tools.apply_patch.tool import apply_patch_tool as apply_patch_tool
