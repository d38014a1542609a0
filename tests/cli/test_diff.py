from __future__ import annotations

from agentcore.cli.diff import render_diff


def shown(diff: str, root: str | None = None) -> list[tuple[str, str]]:
    return [(line.plain, str(line.style)) for line in render_diff(diff, root=root)]


def test_lines_have_the_numbers_that_they_have_in_the_file() -> None:
    diff = "--- a\n+++ a\n@@ -8,3 +8,4 @@\n x\n-y\n+Y\n+Z\n z\n@@ -99,2 +100,1 @@\n-q\n r\n"
    assert shown(diff) == [
        ("  8  x", ""), ("  9 -y", "red"), ("  9 +Y", "green"), (" 10 +Z", "green"), (" 11  z", ""),
        ("...", "dim"), (" 99 -q", "red"), ("100  r", ""),
    ]  # fmt: skip


def test_a_file_that_is_made_or_removed_needs_no_numbers() -> None:
    assert shown("--- /dev/null\n+++ a\n@@ -0,0 +1,2 @@\n+x\n+y\n") == [("+x", "green"), ("+y", "green")]
    assert shown("--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n") == [("-x", "red")]


def test_what_looks_like_a_place_is_a_line_where_a_line_is_due() -> None:
    diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-@@ -1 +1 @@\n+@@ -7,7 +7,7 @@\n @@ -1 +1 @@\n"
    assert [line for line, _ in shown(diff)] == ["1 -@@ -1 +1 @@", "1 +@@ -7,7 +7,7 @@", "2  @@ -1 +1 @@"]


def test_what_is_said_of_the_diff_itself_has_no_number() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ The diff goes on.\n"
    assert [line for line, _ in shown(diff)] == [
        "1 -x", "\\ No newline at end of file", "1 +y", "\\ The diff goes on.",
    ]  # fmt: skip


def test_several_files_are_named_as_they_are_in_the_folder() -> None:
    diff = "--- /p/a\n+++ /p/a\n@@ -1 +1 @@\n-x\n+y\n--- /p/b\n+++ /p/c\n"
    assert [line for line, _ in shown(diff, "/p")] == ["a", "1 -x", "1 +y", "b -> c"]
    assert shown("--- /p/b\n+++ /p/c\n") == []
