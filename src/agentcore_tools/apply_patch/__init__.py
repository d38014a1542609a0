"""Patches: several changes to several files in one text, all of them made or none."""

from agentcore_tools.apply_patch.applying import PatchedFile as PatchedFile
from agentcore_tools.apply_patch.tool import ApplyPatchAction as ApplyPatchAction
from agentcore_tools.apply_patch.tool import ApplyPatchObservation as ApplyPatchObservation
from agentcore_tools.apply_patch.tool import apply_patch_tool as apply_patch_tool
