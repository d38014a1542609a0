"""Agents on a server: profiles that it has, and agents that clients bring with a key of their own."""

from agentcore_serve.agents.own import OwnAgent as OwnAgent
from agentcore_serve.agents.own import restore_own_agent as restore_own_agent
from agentcore_serve.agents.parts import DEFAULT_PARTS as DEFAULT_PARTS
from agentcore_serve.agents.parts import AllowedParts as AllowedParts
from agentcore_serve.agents.profiles import AgentProfile as AgentProfile
from agentcore_serve.agents.profiles import ProfileError as ProfileError
from agentcore_serve.agents.profiles import load_profiles as load_profiles
