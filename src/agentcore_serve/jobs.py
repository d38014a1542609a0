"""Jobs that are asked for twice: a client whose connection was cut asks again, and gets what the first request came to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import anyio

ResultT = TypeVar("ResultT")

_REMEMBERED: Final = 100


class _Done(Generic[ResultT]):
    def __init__(self) -> None:
        self.event = anyio.Event()
        self.results: list[ResultT] = []
        self.error: Exception | None = None


class JobBook(Generic[ResultT]):
    """The jobs of one conversation by their ids, and what the last hundred came to."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, _Done[ResultT]] = OrderedDict()

    async def do(self, job_id: str, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Do a job, or wait for the one of this id, and return or raise what it came to."""
        known = self._jobs.get(job_id)
        if known is None:
            return await self._begin(job_id, work)
        await known.event.wait()
        if known.error is not None:
            raise known.error
        # Whoever began it was cancelled: it is done anew.
        return known.results[0] if known.results else await self.do(job_id, work)

    async def _begin(self, job_id: str, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        job = self._jobs[job_id] = _Done[ResultT]()
        try:
            job.results.append(await work())
        except Exception as error:
            job.error = error
            raise
        finally:
            if not job.results and job.error is None:
                del self._jobs[job_id]
            job.event.set()
            while len(self._jobs) > _REMEMBERED and next(iter(self._jobs.values())).event.is_set():
                self._jobs.popitem(last=False)
        return job.results[0]
