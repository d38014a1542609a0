from __future__ import annotations

import errno
from pathlib import Path

import pytest

from agentcore.cli.failures import UsageError, explain, is_broken_pipe, output_error
from agentcore.errors import (
    AuthenticationError,
    ConversationLocked,
    ConversationNotFound,
    LogDamaged,
    MissingExtra,
    ModelConnectionError,
    PathError,
    RunError,
    StoreError,
)
from agentcore.llm import LLM
from agentcore.llm.failures import ProviderError, model_error, no_connection
from agentcore.llm.providers import full_name
from agentcore.record import EventLog, FileStore


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
    group = ExceptionGroup("a group", [ExceptionGroup("relative_path", [UsageError("Which model?")]), KeyError("x")])
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
    assert "Unexpected" in sentence
    assert "KeyError: 'nonsense'" in sentence
    assert "--debug" in sentence
    assert code == 1


def test_an_output_that_nobody_reads_is_found_in_groups_too() -> None:
    assert is_broken_pipe(ExceptionGroup("", [BrokenPipeError(errno.EPIPE, "Broken pipe")]))
    assert is_broken_pipe(OSError(errno.EIO, "the terminal is gone"))
    assert not is_broken_pipe(OSError(errno.ENOSPC, "No space left on device"))
    assert not is_broken_pipe(KeyError("x"))


def refused(path: str, code: int, reason: str) -> StoreError:
    error = StoreError(f"Making conversation 'x' failed: {reason}. Library words.")
    error.__cause__ = OSError(code, reason, path)
    return error


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_who_may_not_write_the_log_is_told_how_to_choose_another_folder(code: int) -> None:
    assert explain(refused("/ro/conversations", code, "No")) == (
        "No permission to read and write '/ro/conversations' (No); choose another folder with --home or AGENTCORE_HOME.",
        1,
    )


def test_a_full_disk_is_said_in_the_librarys_words() -> None:
    error = refused("/full/x", errno.ENOSPC, "No space left on device")
    assert explain(error) == (str(error), 1)


async def test_a_home_that_is_a_file_is_said_to_be_no_folder(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    for path in (tmp_path / "home", tmp_path / "home" / "conversations"):
        with pytest.raises(StoreError, match="A part of this path is a file") as raised:
            await EventLog.create(FileStore(path), "x")
        assert "Free space" not in str(raised.value)
        assert "--home" not in str(raised.value)  # the library's words are for programs
        said = explain(raised.value)[0]
        assert "cannot be a folder" in said
        assert said.endswith("choose another folder with --home or AGENTCORE_HOME.")


def test_what_is_wrong_with_a_model_is_said_in_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plain, own = LLM(model="openai/x"), LLM(model="x", base_url="http://127.0.0.1:1")
    keyed = LLM(model="openai/x", api_key="sk-1")
    said = explain(model_error(ProviderError(status=401, message="no"), plain))[0]
    assert "Set OPENAI_API_KEY, or AGENTCORE_API_KEY" in said
    assert "the key in AGENTCORE_API_KEY" in explain(model_error(ProviderError(status=401, message="no"), keyed))[0]
    assert "Check --model and --base-url." in explain(model_error(ProviderError(status=404, message="no"), plain))[0]
    assert explain(no_connection(own, "refused"))[0].endswith("Is the server running, is --base-url right?")
    with pytest.raises(ValueError, match="LLM") as raised:
        full_name("claude", compatible=False)
    assert explain(UsageError(str(raised.value)))[0] == str(raised.value)  # worded where it is raised


def test_a_refusal_to_take_what_is_printed_is_found_and_said() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert output_error(ExceptionGroup("", [full])) is full
    assert output_error(OSError(errno.ENOSPC, "No space left on device", "/some/file")) is None
    assert explain(full) == ("Cannot write the output: No space left on device.", 1)
