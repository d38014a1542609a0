"""One program, run to its end: its output and its errors apart, its exit code, nothing left behind."""

from agentcore_tools.run.call import RunAction as RunAction
from agentcore_tools.run.call import RunObservation as RunObservation
from agentcore_tools.run.tool import run_tool as run_tool
