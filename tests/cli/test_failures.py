from __future__ import annotations

import errno

import pytest

from agentcore.cli.failures import UsageError, explain, is_broken_pipe
from agentcore.errors import (
    AuthenticationError,
    ConversationLocked,
    ConversationNotFound,
    LogDamaged,
    MissingExtra,
    ModelConnectionError,
    PathError,
    RunError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("Which model?"), 2),
        (ConversationNotFound("x", "/store"), 2),
        (PathError("/x", "missing", "There is nothing at '/x'."), 2),
        (ConversationLocked("x", "process 1"), 1),
        (LogDamaged("/x", 3, "bad", "agentcore log repair x"), 1),
        (MissingExtra("The model 'a/b'", "litellm"), 1),
        (AuthenticationError("no key"), 1),
    ],
)
def test_an_error_of_ours_is_its_own_sentence(error: Exception, code: int) -> None:
    assert explain(error) == (str(error), code)


def test_of_a_group_the_first_error_is_told() -> None:
    group = ExceptionGroup("a group", [ExceptionGroup("inside", [UsageError("Which model?")]), KeyError("x")])
    assert explain(group) == ("Which model?", 2)


def test_a_failed_run_is_told_by_what_failed() -> None:
    failed = RunError("The run failed with ModelConnectionError: no connection", None)
    failed.__cause__ = ModelConnectionError("no connection\n  to   there")
    assert explain(failed) == ("no connection to there", 1)


def test_the_operating_systems_refusal_names_the_file() -> None:
    sentence, code = explain(PermissionError(errno.EACCES, "Permission denied", "/some/file"))
    assert (sentence, code) == ("The operating system refused: Permission denied ('/some/file').", 1)


def test_a_bug_is_said_to_be_one_and_how_to_see_where() -> None:
    sentence, code = explain(KeyError("nonsense"))
    assert "unexpected" in sentence
    assert "KeyError: 'nonsense'" in sentence
    assert "--debug" in sentence
    assert code == 1


def test_an_output_that_nobody_reads_is_found_in_groups_too() -> None:
    assert is_broken_pipe(ExceptionGroup("", [BrokenPipeError(errno.EPIPE, "Broken pipe")]))
    assert is_broken_pipe(OSError(errno.EIO, "the terminal is gone"))
    assert not is_broken_pipe(OSError(errno.ENOSPC, "No space left on device"))
    assert not is_broken_pipe(KeyError("x"))
