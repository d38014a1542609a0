"""The agent, and one step of it."""

from agentcore.agent.agent import Agent as Agent
from agentcore.agent.recording import record_agent as record_agent
from agentcore.agent.recording import restore_agent as restore_agent
from agentcore.agent.step import Call as Call
from agentcore.agent.step import StepOutcome as StepOutcome
from agentcore.agent.step import take_step as take_step
