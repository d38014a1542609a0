"""`Engine`: the calls to the Docker engine that a box needs. This and `ExecStream` alone know aiodocker.

Above: `DockerBox` and the lists of boxes. Importing it takes a while (aiohttp), so that is done in a worker thread, when a box is started.
Each call is bounded, and raises errors of ours.
"""

from __future__ import annotations

import errno
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, TypeVar, final

import aiodocker
import aiohttp
import anyio

from agentcore.logs import get_logger
from agentcore_sandbox.docker.errors import EngineError, EngineUnreachable, NotThere
from agentcore_sandbox.docker.facts import EngineFacts, ImageFacts, read_engine_facts, read_image_facts
from agentcore_sandbox.docker.labels import BOX
from agentcore_sandbox.docker.stream import ExecStream, close_now

T = TypeVar("T")
JSON = dict[str, Any]

_API: Final = (1, 41)
"""The version of the API that is spoken, where the engine still does: the oldest that will do."""
_CALL_SECONDS: Final = 30.0
_NOT_FOUND: Final = 404
_UNREACHABLE: Final = 900
"""aiodocker's own."""

_logger = get_logger(__name__)


@final
class Engine:
    """A connection to the engine. `connect` makes it, and who made it closes it."""

    def __init__(self, address: str) -> None:
        self._address = address
        # Not aiodocker's own: after a hundred streams at once every later call would wait for ever.
        if address.startswith("unix://"):
            self._connector: aiohttp.BaseConnector = aiohttp.UnixConnector(address.removeprefix("unix://"), limit=0)
            url = "http://localhost"
        else:
            self._connector = aiohttp.TCPConnector(limit=0)
            url = address.replace("tcp://", "http://", 1)
        # Any, because some calls that are needed are private: aiodocker's own leak what they opened, or have no such parameters.
        self._docker: Any = aiodocker.Docker(url=url, connector=self._connector)
        self._facts: EngineFacts | None = None

    @property
    def facts(self) -> EngineFacts:
        """The abilities of the engine. Known once `connect` returned."""
        assert self._facts is not None
        return self._facts

    async def connect(self) -> None:
        """Ask it who it is, and agree on a version of the API.

        Raises:
            EngineError: It does not answer, may not be asked, or is too old or of another system.
        """
        version = await self._call(self._docker.version())
        newest, oldest = _parse_version(version.get("ApiVersion")), _parse_version(version.get("MinAPIVersion"))
        if newest < _API:
            shown, needed = ".".join(map(str, newest)), ".".join(map(str, _API))
            raise EngineError(
                f"The Docker engine at {self._address} is too old: it speaks version {shown} of the API, and {needed} is needed."
                " Install Docker 20.10 or newer."
            )
        major, minor = max(_API, oldest)
        self._docker.api_version = f"v{major}.{minor}"
        info = await self._call(self._docker.system.info())
        if info.get("OSType") != "linux":
            raise EngineError(
                f"The Docker engine at {self._address} runs containers of {info.get('OSType')!r}, and boxes are Linux containers."
                " Switch it to Linux containers."
            )
        self._facts = read_engine_facts(self._address, info)

    async def aclose(self) -> None:
        """End the connection, with every stream that is open."""
        await self._docker.close()
        await self._connector.close()

    async def find_image(self, reference: str) -> ImageFacts | None:
        """Return an image that is here, or None."""
        try:
            return read_image_facts(await self._call(self._docker.images.inspect(reference)))
        except NotThere:
            return None

    async def list_images(self) -> list[str]:
        """Return the names of the images that are here."""
        images = await self._call(self._docker.images.list())
        tags: list[list[str]] = [each.get("RepoTags") or [] for each in images]
        return sorted(tag for each in tags for tag in each if tag != "<none>:<none>")

    async def pull(self, reference: str, see: Callable[[JSON], Awaitable[None]]) -> None:
        """Pull an image from its registry; `see` is awaited with what the engine says on the way. Not bounded: layers are large.

        Raises:
            EngineError: The registry cannot be reached, or refuses.
        """
        with self._translated():
            async with aclosing(self._docker.images.pull(reference, stream=True)) as events:
                async for event in events:
                    await see(event)

    async def create_volume(self, name: str, labels: Mapping[str, str], *, size: int | None) -> None:
        """Make a volume, of a limited size if the engine can."""
        config: JSON = {"Name": name, "Labels": dict(labels)}
        if size is not None:
            config["DriverOpts"] = {"size": str(size)}
        await self._call(self._docker.volumes.create(config))

    async def inspect_volume(self, name: str) -> JSON:
        """Return what the engine knows of a volume."""
        return await self._call(self._docker._query_json(f"volumes/{name}"))

    async def list_volumes(self) -> list[JSON]:
        """Return all volumes with the label of a box."""
        found = await self._call(self._docker.volumes.list(filters={"label": [BOX]}))
        return list(found.get("Volumes") or [])

    async def remove_volume(self, name: str) -> None:
        """Remove a volume; it may be gone already."""
        await self._drop(self._request("DELETE", f"volumes/{name}", {"force": "true"}))

    async def create_container(self, name: str, config: JSON) -> None:
        """Make a container of this name."""
        created = await self._call(
            self._docker._query_json("containers/create", "POST", params={"name": name}, data=config)
        )
        if created.get("Warnings"):
            _logger.debug("docker_warnings", container=name, warnings=str(created["Warnings"]))

    async def put_archive(self, name: str, archive: bytes) -> None:
        """Unpack a tar archive at a container's root."""
        await self._call(self._docker.containers.container(name).put_archive("/", archive))

    async def start_container(self, name: str) -> None:
        """Start a container; it may run already."""
        await self._call(self._docker.containers.container(name).start())

    async def inspect_container(self, name: str) -> JSON:
        """Return what the engine knows of a container."""
        return await self._call(self._docker.containers.container(name).show())

    async def list_containers(self, labels: Sequence[str]) -> list[JSON]:
        """Return all containers, stopped ones too, that have these labels ("name" or "name=value")."""
        filters = json.dumps({"label": list(labels)})
        return await self._call(self._docker._query_json("containers/json", params={"all": "true", "filters": filters}))

    async def stop_container(self, name: str) -> None:
        """Stop a container at once; it may be stopped, or gone, already."""
        await self._drop(self._request("POST", f"containers/{name}/stop", {"t": "0"}))

    async def remove_container(self, name: str) -> None:
        """Remove a container, running or not, with volumes that have no name; it may be gone already."""
        await self._drop(self._request("DELETE", f"containers/{name}", {"force": "true", "v": "true"}))

    async def read_logs(self, name: str, *, lines: int) -> str:
        """Return the last lines that a container's first process wrote."""
        container = self._docker.containers.container(name)
        return "".join(await self._call(container.log(stdout=True, stderr=True, tail=lines)))

    async def had_oom(self, name: str, *, since: float, until: float) -> bool:
        """Return True if something in a container was ended for want of memory between two moments (in seconds since 1970)."""
        filters = json.dumps({"container": [name], "event": ["oom"]})
        params = {"since": f"{since:.3f}", "until": f"{until:.3f}", "filters": filters}
        return bool((await self._call(self._read("events", params))).strip())

    @asynccontextmanager
    async def open_exec(
        self, name: str, argv: Sequence[str], *, size: tuple[int, int] | None = None
    ) -> AsyncGenerator[OpenExec]:
        """Start a command in a container, with the container's user; on a terminal if a size (columns, rows) is passed.

        Leaving the context closes the stream. The command goes on if it does not mind that.
        """
        container = self._docker.containers.container(name)
        made = await self._call(container.exec(argv, stdin=True, tty=size is not None, workdir="/"))
        stream = made.start()
        try:
            await self._call(stream.__aenter__())
            opened = OpenExec(ExecStream(stream), made, self._call)
            if size is not None:
                await opened.resize(*size)
            yield opened
        finally:
            close_now(stream)

    async def _request(self, method: str, path: str, params: Mapping[str, str]) -> None:
        response = await self._docker._do_query(path, method, params=params)
        response.close()

    async def _read(self, path: str, params: Mapping[str, str]) -> bytes:
        # Not `_query`, which does not close the response when its reader is cancelled.
        response = await self._docker._do_query(path, "GET", params=params)
        try:
            return await response.read()
        finally:
            response.close()

    async def _drop(self, request: Awaitable[None]) -> None:
        try:
            await self._call(request)
        except NotThere:
            return

    async def _call(self, call: Awaitable[T]) -> T:
        with self._translated():
            with anyio.fail_after(_CALL_SECONDS):
                return await call

    def _translated(self) -> _Translated:
        return _Translated(self._address)


@final
class OpenExec:
    """A command in a container, while its stream is open."""

    def __init__(self, stream: ExecStream, made: Any, call: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        self.stream = stream
        self._made = made
        self._call = call

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal."""
        await self._call(self._made.resize(h=rows, w=columns))

    async def exit_code(self) -> int | None:
        """Return its exit code, or None while it runs. The end of the stream alone says nothing: the container may be gone."""
        state = await self._call(self._made.inspect())
        return None if state.get("Running") else state.get("ExitCode")


@final
class _Translated:
    """A context that raises our errors in place of those of aiodocker and aiohttp."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        match error:
            case aiodocker.DockerError(status=status) if status == _UNREACHABLE:
                raise self._unreachable(error.__context__ or error) from error
            case aiodocker.DockerError(status=status, message=message):
                raise (NotThere if status == _NOT_FOUND else EngineError)(str(message), status=status) from error
            case TimeoutError():
                raise EngineUnreachable(
                    f"The Docker engine at {self._address} did not answer within {_CALL_SECONDS:.0f} s."
                ) from error
            case aiohttp.ClientError() | OSError() | json.JSONDecodeError():
                raise self._unreachable(error) from error
            case _:
                return

    def _unreachable(self, error: BaseException) -> EngineUnreachable:
        cause = getattr(error, "os_error", error)
        number = getattr(cause, "errno", None)
        if number in (errno.EACCES, errno.EPERM):
            return EngineUnreachable(
                f"This user may not use the Docker engine at {self._address}: permission denied. Add the user to the group of the socket"
                " (`sudo usermod -aG docker $USER`, then log in again) - who may use the engine is root on this machine - or use BubblewrapWorkspace."
            )
        return EngineUnreachable(
            f"No Docker engine answers at {self._address} ({cause}). Start it (`sudo systemctl start docker`), or set DOCKER_HOST to"
            " the address of one that runs."
        )


def _parse_version(text: object) -> tuple[int, int]:
    major, _, minor = str(text or "0.0").partition(".")
    return int(major), int(minor)
