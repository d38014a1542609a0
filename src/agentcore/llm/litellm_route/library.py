"""litellm: imported here and nowhere else, when it is first needed, in a worker thread, and kept quiet.

Importing it takes seconds of CPU, fetches a price list over the network, reads a `.env` file, and registers loggers;
calling it starts background tasks that log. None of that is what the user of an agent asked for, so all of it is off.
It speaks asyncio, and its tasks do not expect the level-triggered cancellation of anyio's scopes: every call runs in an
asyncio task of its own, which is cancelled once and waited for.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - litellm is an asyncio library; see above
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import anyio

from agentcore._threads import Threads
from agentcore.errors import MissingExtra, ModelConnectionError, ModelError

T = TypeVar("T")
Call = asyncio.Task
"""A call under way. `end` it."""

END_SECONDS = 5.0
"""How long a call that is over may take to end."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")

_importing = threading.Lock()
_imported: Any = None
_threads = Threads("litellm", 1)


async def litellm() -> Any:
    """Return the imported module, silenced; what it opens is closed with the event loop.

    Raises:
        MissingExtra: It is not installed.
        ModelError: The program does not run on asyncio.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise ModelError(
            "This model is reached through litellm, which runs on asyncio only, and this program runs on trio. "
            "Start it with anyio.run(main), which is asyncio."
        ) from None
    module = _imported
    if module is None:
        # One thread imports; a thousand conversations that start at once wait for it here and not in threads.
        module = await _threads.run(_import, abandon_on_cancel=True)
    if loop not in _keepers:
        keeper = _keep(module)
        await anext(keeper)
        _keepers[loop] = keeper
    return module


def _import() -> Any:
    global _imported  # noqa: PLW0603 - a module is imported once per process
    with _importing:
        if _imported is None:
            environment = {
                # Its own file of prices and models, instead of one fetched over the network.
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                # Anything but DEV, in which it loads a .env file from wherever the program was started.
                "LITELLM_MODE": "PRODUCTION",
            }
            added = {name: value for name, value in environment.items() if name not in os.environ}
            os.environ.update(added)
            try:
                module = import_module("litellm")
            except ImportError as error:
                if error.name != "litellm":
                    raise
                raise MissingExtra("A model at a provider", "litellm") from None
            finally:
                for name in added:
                    os.environ.pop(name, None)
            _quieten(module)
            _load_the_rest(module)
            _imported = module
    return _imported


def _quieten(module: Any) -> None:
    module.suppress_debug_info = True
    # Else it fetches tokenizers to count the tokens that a provider left uncounted.
    module.disable_hf_tokenizer_download = True
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        # It prints to stderr by itself; what it has to say goes where the program's logging goes.
        logger.handlers = [logging.NullHandler()]


def _load_the_rest(module: Any) -> None:
    """Load here, in a thread, what it would load on the event loop in the first calls: a third of a second."""
    with suppress(Exception):  # what fails to load now is loaded, or fails, when it is needed
        module.get_llm_provider(model="openai/any")
        _ = module.encoding
        import_module("openai.resources")
        import_module("litellm.llms.custom_httpx.http_handler").get_ssl_configuration()


# Clients are kept by litellm per event loop and never closed. An async generator that is still open when a loop ends
# is closed by it, in it: that is the one moment at which their connections can be closed well.
_keepers: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = WeakKeyDictionary()
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Any]] = WeakKeyDictionary()


async def _keep(module: Any) -> AsyncGenerator[None]:
    loop = asyncio.get_running_loop()
    _clients[loop] = WeakSet()
    try:
        yield
    finally:
        _note_clients(module, loop)
        with anyio.move_on_after(END_SECONDS, shield=True):
            await _close(list(_clients.pop(loop)))
            await _close(_shared_session(module, loop))
        _cache(module, loop, drop=True)


def _shared_session(module: Any, loop: asyncio.AbstractEventLoop) -> list[Any]:
    """Detach what a client that litellm shares between loops opened in this one; it opens another when needed."""
    made: dict[str, Any] = module.__dict__  # where it is only once it was needed
    client = made.get("module_level_aclient")
    session = getattr(getattr(getattr(client, "client", None), "_transport", None), "client", None)
    return [session] if session is not None and getattr(session, "_loop", None) is loop else []


async def _close(clients: list[Any]) -> None:
    for client in clients:
        with suppress(Exception):
            await (getattr(client, "aclose", None) or client.close)()


def _note_clients(module: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Remember the clients: litellm forgets them after a while, and those may still be open when the loop ends."""
    clients = _clients.get(loop)
    if clients is None:
        return  # the loop is ending
    for client in _cache(module, loop):
        with suppress(TypeError):
            clients.add(client)


def _cache(module: Any, loop: asyncio.AbstractEventLoop, *, drop: bool = False) -> list[Any]:
    cache: dict[str, Any] = getattr(module.in_memory_llm_clients_cache, "cache_dict", {})
    keys = [key for key in list(cache) if key.endswith(f"-{id(loop)}")]
    found = [cache[key] for key in keys if hasattr(cache[key], "aclose") or hasattr(cache[key], "close")]
    if drop:
        for key in keys:
            cache.pop(key, None)
    return found


def start(work: Callable[[], Coroutine[Any, Any, T]]) -> Call[T]:
    """Start a call in a task of its own; the caller must `end` it."""

    async def unlogged() -> T:
        # What it calls an internal call, one made for itself, it does not log. Only this task's context says so.
        import_module("litellm._internal_context").is_internal_call.set(True)
        try:
            return await work()
        finally:
            _note_clients(_imported, asyncio.get_running_loop())

    return asyncio.create_task(unlogged(), name="agentcore model call")


async def end(task: Call[Any]) -> None:
    """Cancel a call, if it is not done, and wait until it is; to be shielded, for `END_SECONDS`."""
    while not task.done() and _prepares_in_thread(task):  # noqa: ASYNC110 - litellm gives no signal when it is done
        # The thread's result would be a coroutine that nobody awaits. It is there in milliseconds.
        await anyio.sleep(0.005)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain


def _prepares_in_thread(task: Call[Any]) -> bool:
    """Return whether litellm still makes the request, in a thread that the called function awaits."""
    inner: Any = task.get_coro()
    while hasattr(getattr(inner, "cr_await", None), "cr_code"):
        inner = inner.cr_await
    return getattr(inner, "cr_code", None) is not None and inner.cr_code.co_name in {"acompletion", "aresponses"}


async def result(task: Call[T]) -> T:
    """Wait for a call that is about to be done; the caller's cancellation does not reach it (see `end`)."""
    await asyncio.wait([task])
    if task.cancelled():
        # Not by us, who cancel in `end` alone: something inside was closed from outside.
        raise ModelConnectionError("The connection was closed while the model was being waited for.")
    return task.result()


async def apart(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a call in a task of its own and give its result."""
    task = start(work)
    try:
        return await result(task)
    finally:
        with anyio.move_on_after(END_SECONDS, shield=True):
            await end(task)
