"""`agentcore serve`: the server in a process of its own, on hypercorn."""

from __future__ import annotations

import errno
import gc
import json
import logging
import os
import socket
import ssl
import stat
import sys
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from anyio.to_thread import run_sync

import agentcore
from agentcore._groups import leaf_exceptions
from agentcore.cli.console import make_console
from agentcore.cli.failures import UsageError
from agentcore.cli.mcp_files import NO_SERVERS, MCPFiles, Servers, read_named, take_servers
from agentcore.cli.models import build_agent
from agentcore.cli.process import catch_interrupts
from agentcore.cli.settings import read_settings
from agentcore.cli.sources import add_servers
from agentcore.errors import MissingExtra
from agentcore.logs import configure_logging

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from agentcore.agent import Agent
    from agentcore_serve import ServeSettings
    from agentcore_serve.app import ServeApp

_GRACE_SECONDS: Final = 3.0
"""Seconds for connections that are still open when everything has come to its end."""
_REMOVE_SECONDS: Final = 5.0
_BACKLOG: Final = 2_048


async def serve(
    flags: Mapping[str, Any],
    *,
    model: str | None,
    base_url: str | None,
    mcp: Sequence[str] = (),
    log: Literal["text", "json", "none"],
    level: str,
) -> int:
    """Serve until a signal: the first one ends it in order, a second one at once.

    Args:
        flags: Settings by name, over those of the environment.
        model: The model of the one agent that there is without a file of agents.
        base_url: The address of its API.
        mcp: Files with MCP servers that agents may use.
        log: The form of the log on standard error.
        level: The least level that is logged.

    Raises:
        UsageError: A setting is wrong, or the address can't be had.
        MissingExtra: The parts of the server are not installed.
    """
    # What is imported stays: looking for garbage meanwhile finds none, and is a tenth of the start.
    collects = gc.isenabled()
    gc.disable()
    try:
        from agentcore_serve import create_app  # noqa: PLC0415 starlette is an extra, and slow to import
        from agentcore_serve.settings import ServeSettings  # noqa: PLC0415

        import_module("hypercorn.asyncio")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("agentcore"):
            raise
        raise MissingExtra("agentcore serve", "serve") from error
    finally:
        if collects:
            gc.enable()
    if log != "none":
        configure_logging(json=log == "json", level=level)
    try:
        settings = ServeSettings.from_environment(**flags)
        servers = await run_sync(_take_servers, mcp, settings)
        if mcp:
            # A record has the name of a server of these files, and nothing that could be started.
            settings = settings.model_copy(update={"allowed_parts": (*settings.allowed_parts, "mcp")})
        agents = _default_agent(model, base_url, servers) if settings.agents is None else None
        app = create_app(settings, agents=agents)
    except ValueError as error:
        raise UsageError(str(error)) from None
    await run_sync(_check_certificate, settings)
    listener = await run_sync(_listen, settings)
    try:
        async with catch_interrupts() as interrupts:
            asked = anyio.Event()

            async def ask() -> None:
                asked.set()

            running = anyio.CancelScope()

            async def shutdown_trigger() -> None:
                await asked.wait()
                await app.drain()
                # From Python 3.12 on hypercorn has no bound of its own: it waits for every connection.
                running.deadline = anyio.current_time() + _GRACE_SECONDS

            interrupts.last_words = "Stopped at once."
            with interrupts.handled_by(ask):
                # Entered here and not by hypercorn, so that what keeps it from starting is raised as it is.
                async with _started(app), anyio.create_task_group() as tasks:
                    await _announce(app, settings, listener)
                    # In a task of its own: asyncio's task group, which it uses, leaves its task marked as cancelled.
                    tasks.start_soon(_run, app, settings, listener, shutdown_trigger, running, name="hypercorn")
    finally:
        listener.close()
        if settings.unix is not None:
            with anyio.move_on_after(_REMOVE_SECONDS, shield=True):
                await anyio.Path(settings.unix).unlink(missing_ok=True)
    return 0


def _take_servers(paths: Sequence[str], settings: ServeSettings) -> Servers:
    """Make the MCP servers of files known, and print what is wrong with them."""
    if not paths:
        return NO_SERVERS
    # A workspace is somewhere in the root, and what writes there may write such a file too.
    return take_servers(MCPFiles(read_named(paths, str(settings.root))), make_console(stderr=True))


def _default_agent(model: str | None, base_url: str | None, servers: Servers) -> dict[str, Agent]:
    """Return the agent of `agentcore run` under the name "default", where a model is named.

    Raises:
        UsageError: The model cannot be reached with these settings.
    """
    settings = read_settings(model=model, base_url=base_url)
    # Not with the memory of the person who starts the server: its owners are others.
    if settings.model is None:
        return {}
    return {"default": add_servers(build_agent(settings, without=("memory",)), servers.toolsets())}


@asynccontextmanager
async def _started(app: ServeApp) -> AsyncGenerator[None]:
    """Enter the lifespan.

    Raises:
        UsageError: A file that the settings name is wrong.
    """
    try:
        async with app.lifespan():
            yield
    except Exception as error:
        first = leaf_exceptions(error)[0]
        if app.started.is_set() or not isinstance(first, ValueError):
            raise
        raise UsageError(str(first)) from None


async def _without_lifespan(app: ServeApp, scope: Any, receive: Any, send: Any) -> None:
    """Serve an app whose lifespan is entered already."""
    if scope["type"] != "lifespan":
        await app(scope, receive, send)
        return
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _run(
    app: ServeApp,
    settings: ServeSettings,
    listener: socket.socket,
    shutdown_trigger: Any,
    running: anyio.CancelScope,
) -> None:
    from hypercorn.config import Config, Sockets  # noqa: PLC0415 an extra

    class OnListener(Config):
        def create_sockets(self) -> Sockets:
            return Sockets([listener], [], []) if self.ssl_enabled else Sockets([], [listener], [])

    config = OnListener()
    config.certfile = settings.tls_cert and str(settings.tls_cert)
    config.keyfile = settings.tls_key and str(settings.tls_key)
    config.graceful_timeout = _GRACE_SECONDS
    config.backlog = _BACKLOG
    config.include_server_header = False
    config.h11_max_incomplete_size = 16 * 1024
    config.h2_max_header_list_size = 16 * 1024
    # Its own access log would write queries, and its own error log another format.
    config.accesslog = None
    config.errorlog = logging.getLogger("agentcore.serve.hypercorn")
    config.loglevel = "WARNING"
    # Hypercorn has a module for each event loop; this process runs asyncio.
    hypercorn: Any = import_module("hypercorn.asyncio")
    served = partial(_without_lifespan, app)
    with running:
        await hypercorn.serve(served, config, shutdown_trigger=shutdown_trigger, mode="asgi")


def _check_certificate(settings: ServeSettings) -> None:
    """Read the certificate and its key before the address is announced.

    Raises:
        UsageError: One can't be read, or they do not belong together.
    """
    if settings.tls_cert is None:
        return
    for flag, path in (("--tls-cert", settings.tls_cert), ("--tls-key", settings.tls_key)):
        if path is not None and not path.is_file():
            raise UsageError(f"{flag}: no such file: {str(path)!r}.")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:
        raise UsageError(
            f"--tls-cert and --tls-key are not a certificate and its private key in PEM: {error.strerror or error}."
        ) from None


def _listen(settings: ServeSettings) -> socket.socket:
    """Listen before anything is started, so that a port that is taken is found at once.

    Raises:
        UsageError: The address can't be had.
    """
    if settings.unix is not None:
        return _listen_unix(str(settings.unix))
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"{where} is in use. Choose another port with --port (0 for any free one).") from None
        raise UsageError(f"Cannot listen on {where}: {error.strerror or error}.") from None
    return listener


def _listen_unix(path: str) -> socket.socket:
    if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise UsageError(f"{path!r} is there, and is not a socket. Choose another path with --unix.")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.lexists(path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)  # of a server that is gone
                except OSError as error:
                    raise UsageError(f"{path!r} is there and is not a socket: {error.strerror}.") from None
                else:
                    raise UsageError(f"Another server listens on {path!r}.")
        before = os.umask(0o177)  # for its user alone
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise UsageError(f"Cannot listen on {path!r}: {error.strerror or error}.") from None
    except BaseException:
        listener.close()
        raise
    return listener


async def _announce(app: ServeApp, settings: ServeSettings, listener: socket.socket) -> None:
    """Print one line for programs when the server takes requests, and the first key where there is none."""
    url = url_of(settings, listener)
    line: dict[str, Any] = {"url": url, "pid": os.getpid(), "version": agentcore.__version__}
    if (key := await app.make_first_key()) is not None:
        sys.stderr.write(
            f"This server had no key, so one was made. It is shown this once:\n\n    {key.get_secret_value()}\n\n"
            f"Use it as AGENTCORE_SERVER_KEY, or: curl -H 'Authorization: Bearer KEY' {url}/api/v1/version\n"
            "More keys: agentcore keys add NAME\n"
        )
    # A browser does not reach a Unix socket.
    if settings.unix is None and (link := await app.make_page_link(url)) is not None:
        once = " (the link works once, for a minute; another one: agentcore keys link)" if settings.auth else ""
        sys.stderr.write(f"Watch it in a browser{once}:\n\n    {link}\n\n")
    if settings.sandbox == "docker" and os.geteuid() == 0:
        sys.stderr.write(
            "This server runs as root, and no container does: a workspace whose folder belongs to root and is not empty is refused.\n"
            "Run the server as another user, or give such a folder to user 1000: chown -R 1000:1000 FOLDER\n"
        )
    sys.stderr.flush()
    print(json.dumps(line), flush=True)


def url_of(settings: ServeSettings, listener: socket.socket) -> str:
    """Return the address under which this machine reaches the server."""
    if settings.unix is not None:
        return f"unix:{settings.unix}"
    host, port = listener.getsockname()[:2]
    named = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 compared
    return f"{'https' if settings.tls_cert else 'http'}://{named}:{port}"
