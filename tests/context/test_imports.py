from __future__ import annotations

import time

import pytest

from agentcore.context.imports import import_target, imports_in


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("See @README.md, @docs/a.md.", ["README.md", "docs/a.md"]),
        ("@a.md\n\t@b.md @a.md", ["a.md", "b.md"]),
        ("mail me@example.org or (@alice)", []),
        ("`@code.md` and ``x``@no.md", []),
        ("```\n@fenced.md\n```\n@after.md\n~~~ text\n@no.md\n```\n~~~\n@too.md", ["after.md", "too.md"]),
        ("````\n```\n@no.md\n````\n@yes.md", ["yes.md"]),
        ("@ @@ @, @" + "x" * 5_000, []),
    ],
)
def test_imports_are_words_outside_of_code(text: str, paths: list[str]) -> None:
    assert list(imports_in(text)) == paths


def test_a_target_is_beside_the_file_that_imports_it() -> None:
    assert import_target("../a.md", "/p/docs/CLAUDE.md") == "/p/a.md"
    assert import_target("/etc/passwd", "/p/CLAUDE.md") == "/etc/passwd"
    assert import_target("~/a.md", "/p/CLAUDE.md") is None


def test_hostile_texts_take_no_longer_than_others() -> None:
    began = time.process_time()
    for text in ("`" * 200_000, "@" * 200_000, " @" * 100_000, ("`@x` " * 40_000), "@a" * 100_000):
        list(imports_in(text))
    assert time.process_time() - began < 2
