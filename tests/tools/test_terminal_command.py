"""What is known of a command before it is typed."""

from __future__ import annotations

import pytest

from agentcore_tools.terminal.input import count


@pytest.mark.parametrize(
    "command",
    [
        "",
        "make",
        "make &&\n  echo made ||\n  echo failed",
        "ls |\n  wc -l",
        "for i in 1 2; do\n  echo $i; done",
        "while read -r x; do\n  echo $x\ndone < list | sort",
        "if true; then\n  a\nelse\n  b\nfi",
        "case $x in\n  a) b;;\nesac",
        "f() {\n  a\n  b\n}",
        "{ a; b; }",
        "(a; b)",
        "cat <<'END' > file\none; two\nEND\n",
        "cat <<-END | sort\n\tone & two\n\tEND",
        "python - <<PY && echo done\nimport os\nprint(1); print(2)\nPY",
        "echo one \\\n  two",
        "echo 'a;\nb' \"c\n$(d; e)\"",
        "a=(1\n  2)",
        "# first; this\nmake  # then; that\n",
        "sleep 9 &",
        "make;",
        "\ud800;",
    ],
)
async def test_one_command_is_one_in_however_many_lines(command: str) -> None:
    assert await count(command) == 1


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("cd x; make", 2),
        ("cd x\nmake\n", 2),
        ("server & curl x", 2),
        ("server &\ncurl x", 2),
        ("a; b; c;", 3),
        ("cat <<END\nx\nEND\nls", 2),
        ("f() { a; }\nf", 2),
        ("a=1\n\n# then\nexport b=2\nc && d", 3),
        ("for i in 1 2; do echo; done; echo é\nls", 3),
    ],
)
async def test_several_are_counted(command: str, number: int) -> None:
    assert await count(command) == number


@pytest.mark.parametrize("command", ["if a; then\nb", "cat <<A\n" * 3_000, "a;" * 100_000, "))((;\n&&&"])
async def test_what_the_parser_can_not_know_counts_as_one(command: str) -> None:
    assert await count(command) == 1
