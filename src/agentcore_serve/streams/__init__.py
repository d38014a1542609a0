"""Streams: what happens in a conversation, sent to all who watch it, as server-sent events or over a WebSocket."""

from agentcore_serve.streams.connection import bound_sends as bound_sends
from agentcore_serve.streams.conversation import ConversationStreams as ConversationStreams
from agentcore_serve.streams.encode import EncodedEvents as EncodedEvents
from agentcore_serve.streams.hub import StreamHub as StreamHub
from agentcore_serve.streams.sse import EventStream as EventStream
from agentcore_serve.streams.sse import Streamed as Streamed
from agentcore_serve.streams.sse import stream_sse as stream_sse
from agentcore_serve.streams.timing import Timing as Timing
from agentcore_serve.streams.watched import AsksClients as AsksClients
from agentcore_serve.streams.watched import ClientFrames as ClientFrames
from agentcore_serve.streams.watched import Signal as Signal
from agentcore_serve.streams.watched import Watched as Watched
from agentcore_serve.streams.websocket import StreamedSocket as StreamedSocket
from agentcore_serve.streams.websocket import refuse_websocket as refuse_websocket
from agentcore_serve.streams.websocket import stream_websocket as stream_websocket
