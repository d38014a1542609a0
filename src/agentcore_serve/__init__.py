"""Conversations over HTTP and WebSocket, as an ASGI app. It holds nothing yet."""
