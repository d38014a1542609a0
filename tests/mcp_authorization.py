"""An authorization server and an MCP server that wants its tokens, on the loopback: real HTTP, in a thread of this process."""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx
import uvicorn
from mcp.server.mcpserver import MCPServer as Program
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass
class Authorization:
    """The two servers, and what they were asked. What a test sets here holds from the next request on."""

    url: str = ""
    expires_in: int | None = 3600
    gives_refresh_tokens: bool = True
    is_public: bool = False
    """Whether the MCP server wants no token."""
    registers: bool = True
    refuses: str | None = None
    """The error that the page for logging in comes back with."""
    state: str | None = None
    """The state that it comes back with, instead of the one that it got."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """Changes to the metadata of the authorization server."""
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    """Changes to those of the MCP server."""
    token_status: int = 200
    token_body: Any = None
    """The answer of the token endpoint, instead of a good one."""
    tokens: set[str] = field(default_factory=set[str])
    """The access tokens that are good."""
    refresh_tokens: set[str] = field(default_factory=set[str])
    """Each is good for once."""
    grants: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The requests to the token endpoint."""
    asked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    """The paths that were asked for, and the credentials."""
    registrations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    @property
    def mcp(self) -> str:
        """The address of the MCP server."""
        return f"{self.url}/mcp"

    async def describe_resource(self, request: Request) -> Response:
        resource = f"{self.url}/{request.path_params['name']}"
        return JSONResponse({"resource": resource, "authorization_servers": [self.url], **self.resource})

    async def describe(self, _: Request) -> Response:
        described = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/login",
            "token_endpoint": f"{self.url}/give",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
        }
        return JSONResponse({**described, **self.metadata})

    async def register(self, request: Request) -> Response:
        if not self.registers:
            return JSONResponse({"error": "access_denied"}, 403)
        wanted = await request.json()
        self.registrations.append(wanted)
        return JSONResponse({**wanted, "client_id": f"client-{len(self.registrations)}"}, 201)

    async def log_in(self, request: Request) -> Response:
        """Be the page for logging in, of a person who agrees at once."""
        asked = dict(request.query_params)
        back = {"state": self.state or asked["state"]}
        if self.refuses is not None:
            back |= {"error": self.refuses, "error_description": "The person said no."}
        else:
            back["code"] = secrets.token_urlsafe(8)
            self.codes[back["code"]] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def give(self, request: Request) -> Response:
        form = {name: each[0] for name, each in parse_qs((await request.body()).decode()).items()}
        self.grants.append(form)
        if self.token_body is not None or self.token_status != 200:
            return JSONResponse(self.token_body, self.token_status)
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            is_good = base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
            is_good = is_good and (form["redirect_uri"], form["client_id"], form["resource"]) == (
                asked["redirect_uri"],
                asked["client_id"],
                asked["resource"],
            )
        else:
            is_good = form["refresh_token"] in self.refresh_tokens
            self.refresh_tokens.discard(form["refresh_token"])
        if not is_good:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(self.issue())

    def issue(self) -> dict[str, Any]:
        """Make new tokens."""
        given: dict[str, Any] = {"access_token": f"access-{secrets.token_hex(16)}", "token_type": "bearer"}
        self.tokens.add(given["access_token"])
        if self.expires_in is not None:
            given["expires_in"] = self.expires_in
        if self.gives_refresh_tokens:
            given["refresh_token"] = f"refresh-{secrets.token_hex(16)}"
            self.refresh_tokens.add(given["refresh_token"])
        return given

    def revoke(self) -> None:
        """Let no token be good any more."""
        self.tokens.clear()
        self.refresh_tokens.clear()

    def guard(self, inner: ASGIApp, older: ASGIApp, others: ASGIApp) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            credentials = Request(scope).headers.get("authorization")
            self.asked.append((scope["path"], credentials))
            is_older = scope["path"].startswith(("/sse", "/messages"))
            if scope["path"] != "/mcp" and not is_older:
                await others(scope, receive, send)
            elif self.is_public or (credentials or "").removeprefix("Bearer ") in self.tokens:
                await (older if is_older else inner)(scope, receive, send)
            else:
                where = f"{self.url}/.well-known/oauth-protected-resource/{'sse' if is_older else 'mcp'}"
                refusal = Response(status_code=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})
                await refusal(scope, receive, send)

        return app


def _program(authorization: Authorization) -> Program:
    program = Program("guarded")

    @program.tool()
    async def whisper() -> str:  # pyright: ignore[reportUnusedFunction]
        """Return the tokens."""
        return f"the tokens are {', '.join(sorted(authorization.tokens | authorization.refresh_tokens))}."

    return program


@contextmanager
def serve_authorization() -> Generator[Authorization]:
    """Serve both while the context is open."""
    authorization = Authorization()
    app = authorization.guard(
        _program(authorization).streamable_http_app(),
        _program(authorization).sse_app(),
        Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/{name}", authorization.describe_resource),
                Route("/.well-known/oauth-authorization-server", authorization.describe),
                Route("/register", authorization.register, methods=["POST"]),
                Route("/login", authorization.log_in),
                Route("/give", authorization.give, methods=["POST"]),
            ]
        ),
    )
    listening = socket.create_server(("127.0.0.1", 0))
    authorization.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config = uvicorn.Config(app, log_config=None, ws="none", lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        # It imports until it serves, and a process that is forked meanwhile finds half of it.
        httpx.get(authorization.url)
        authorization.asked.clear()
        yield authorization
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
