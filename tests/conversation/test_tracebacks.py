"""A program that is not configured ends in one sentence that says what to do, below its own lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentcore.errors import RunError, ScriptExhausted
from agentcore.testing import say
from rounds import some_quick
from talks import talk

ROOT = Path(__file__).parents[2]
README = next(
    program for program in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
)


def stderr_of(program: str, folder: Path) -> list[str]:
    """Run a program that fails, in a process without any key, and return the lines of its error."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr.splitlines()


def frames_of_ours(lines: list[str]) -> list[str]:
    return re.findall(r'File ".*/agentcore/(.*)", line \d+, in (\w+)', "\n".join(lines))


@pytest.mark.parametrize(
    ("model", "how", "says"),
    some_quick(
        [
            ("openai/gpt-5-mini", "asyncio", "Set OPENAI_API_KEY"),
            ("openai/gpt-5-mini", "trio", "Set OPENAI_API_KEY"),
            ("nowhere/some-model", "asyncio", "nowhere"),
            (
                "bedrock/some-model",
                "no litellm",
                "'bedrock/some-model' needs a part that is not installed: pip install",
            ),
            ("opnai/gpt-5-mini", "no litellm", "there is no provider 'opnai'. Did you mean 'openai'?"),
        ],
        4,
    ),
)
def test_a_program_that_is_not_configured_shows_its_own_lines_and_one_sentence(
    tmp_path: Path, model: str, how: str, says: str
) -> None:
    program = README.replace("openai/gpt-5-mini", model)
    if how == "no litellm":
        program = f"import sys\nsys.modules['litellm'] = None\n{program}"
    else:
        program = program.replace("(main)", f"(main, backend={how!r})")
    lines = stderr_of(program, tmp_path)
    assert len(lines) <= 25, "\n".join(lines)
    assert "\n".join(lines).count("Traceback (most recent call last)") == 1
    assert [name for _, name in frames_of_ours(lines)] == ["run"]
    assert says in lines[-1]


async def test_a_script_that_is_exhausted_is_the_only_error() -> None:
    async with talk([say("one")]) as conversation:
        await conversation.run("go")
        with pytest.raises(RunError, match="was asked once more") as caught:
            await conversation.run("again")
        with pytest.raises(RunError) as streamed:
            async for _ in conversation.run_stream("again"):
                pass
    for error in (caught.value, streamed.value):
        assert isinstance(error.error, ScriptExhausted)
        assert error.__cause__ is None
        assert error.__suppress_context__


async def test_a_bug_in_a_program_keeps_its_traceback() -> None:
    async with talk([ZeroDivisionError("mine")]) as conversation:
        with pytest.raises(RunError) as caught:
            await conversation.run("go")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.error is caught.value.__cause__
