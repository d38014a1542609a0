"""The values of commands and jobs: what a retry of one is known by."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentcore.commands import Ask, Condense, Delete, Fork, Job, Run
from agentcore.ids import is_conversation_id


def test_a_job_has_an_id_of_its_own_and_a_fork_the_id_of_its_log() -> None:
    jobs: list[Job] = [Ask(question="why?"), Fork(), Fork(at=3), Condense(), Delete()]
    assert len({job.id for job in jobs}) == len(jobs)
    forks = [job.conversation for job in jobs if isinstance(job, Fork)]
    assert len(set(forks)) == 2
    assert all(map(is_conversation_id, forks))


def test_a_job_is_the_same_after_travelling_as_json_and_never_changes() -> None:
    fork = Fork(at=3)
    assert Fork.model_validate_json(fork.model_dump_json()) == fork
    with pytest.raises(ValidationError):
        fork.at = 4  # pyright: ignore[reportAttributeAccessIssue]


def test_a_run_is_waited_for_unless_it_says_otherwise() -> None:
    assert Run().waits
    assert not Run(waits=False).waits
