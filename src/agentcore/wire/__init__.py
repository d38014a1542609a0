"""The wire: what a server and its clients send each other, as frames, request models and problems."""

from agentcore.wire.asks import AskResult as AskResult
from agentcore.wire.asks import SecretAnswer as SecretAnswer
from agentcore.wire.asks import ToolAnswer as ToolAnswer
from agentcore.wire.asks import ToolFailed as ToolFailed
from agentcore.wire.asks import ToolProgress as ToolProgress
from agentcore.wire.asks import parse_ask_result as parse_ask_result
from agentcore.wire.frames import AskFrame as AskFrame
from agentcore.wire.frames import Bye as Bye
from agentcore.wire.frames import Cursor as Cursor
from agentcore.wire.frames import DeltaFrame as DeltaFrame
from agentcore.wire.frames import EventFrame as EventFrame
from agentcore.wire.frames import Frame as Frame
from agentcore.wire.frames import Gap as Gap
from agentcore.wire.frames import Hello as Hello
from agentcore.wire.frames import Ping as Ping
from agentcore.wire.frames import Withdraw as Withdraw
from agentcore.wire.frames import encode_event as encode_event
from agentcore.wire.frames import encode_frame as encode_frame
from agentcore.wire.frames import encode_sse as encode_sse
from agentcore.wire.frames import parse_frames as parse_frames
from agentcore.wire.problems import FieldProblem as FieldProblem
from agentcore.wire.problems import Problem as Problem
from agentcore.wire.problems import error_of as error_of
from agentcore.wire.problems import problem_of as problem_of
