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

FULL = OSError(errno.ENOSPC, "No space left on device")


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


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
        (caused(StoreError("The disk is full. Library words."), OSError(errno.ENOSPC, "No space", "/full/x")), 1),
    ],
)
def test_an_error_of_ours_is_its_own_sentence(error: Exception, code: int) -> None:
    assert explain(error) == (str(error), code)


@pytest.mark.parametrize(
    ("error", "sentence", "code"),
    [
        (ExceptionGroup("", [ExceptionGroup("", [UsageError("Which?")]), KeyError("x")]), "Which?", 2),
        (RunError("failed", None, ModelConnectionError("no connection\n  to   there")), "no connection to there", 1),
        (
            PermissionError(errno.EACCES, "Permission denied", "/some/file"),
            "The operating system refused: Permission denied ('/some/file').",
            1,
        ),
        (KeyError("nonsense"), "Unexpected KeyError: 'nonsense'. Use --debug to see where.", 1),
        (FULL, "Cannot write the output: No space left on device.", 1),
        *(
            (
                caused(StoreError("Library words."), OSError(code, "No", "/ro/conversations")),
                "No permission to read and write '/ro/conversations' (No); choose another folder with --home or AGENTCORE_HOME.",
                1,
            )
            for code in (errno.EACCES, errno.EPERM, errno.EROFS)
        ),
    ],
)  # fmt: skip
def test_another_error_is_explained(error: Exception, sentence: str, code: int) -> None:
    assert explain(error) == (sentence, code)


def test_an_output_that_nobody_reads_or_that_is_full_is_found_in_groups_too() -> None:
    assert is_broken_pipe(ExceptionGroup("", [BrokenPipeError(errno.EPIPE, "Broken pipe")]))
    assert is_broken_pipe(OSError(errno.EIO, "the terminal is gone"))
    assert not is_broken_pipe(FULL)
    assert not is_broken_pipe(KeyError("x"))
    assert output_error(ExceptionGroup("", [FULL])) is FULL
    assert output_error(OSError(errno.ENOSPC, "No space left on device", "/some/file")) is None


async def test_a_home_that_is_a_file_is_said_to_be_no_folder(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    for path in (tmp_path / "home", tmp_path / "home" / "conversations"):
        with pytest.raises(StoreError, match="A part of this path is a file") as raised:
            await EventLog.create(FileStore(path), "x")
        assert "--home" not in str(raised.value)  # the library's words are for programs
        sentence = explain(raised.value)[0]
        assert "cannot be a folder" in sentence
        assert sentence.endswith("choose another folder with --home or AGENTCORE_HOME.")


def test_what_is_wrong_with_a_model_is_said_in_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plain, own = LLM(model="openai/x"), LLM(model="x", base_url="http://127.0.0.1:1")
    for error, part in (
        (model_error(ProviderError(status=401, message="no"), plain), "Set OPENAI_API_KEY, or AGENTCORE_API_KEY"),
        (
            model_error(ProviderError(status=401, message="no"), LLM(model="openai/x", api_key="sk-1")),
            "the key in AGENTCORE_API_KEY",
        ),
        (model_error(ProviderError(status=404, message="no"), plain), "Check --model and --base-url."),
        (no_connection(own, "refused"), "Is the server running, is --base-url right?"),
    ):
        assert part in explain(error)[0]
    with pytest.raises(ValueError, match="LLM") as raised:
        full_name("claude", compatible=False)
    assert explain(UsageError(str(raised.value)))[0] == str(raised.value)  # worded where it is raised
