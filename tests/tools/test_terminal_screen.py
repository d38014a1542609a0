"""What programs write to a terminal, as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore_tools._output import HeadAndTail, find_gap, mark_gaps
from agentcore_tools.terminal.protocol import Echo, Report, ReportParser, new_nonce
from agentcore_tools.terminal.screen import Screen


def shown(*pieces: str, height: int = 50) -> str:
    screen = Screen(200, height)
    for piece in pieces:
        screen.feed(piece)
    return screen.finish()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\nb", "a\nb"),
        ("a\r\r\nb", "a\nb"),
        ("10%\r50%\r100%\r\ndone", "100%\ndone"),
        ("abcdef\rxy", "xycdef"),
        ("abc\b\bX", "aXc"),
        ("abc\b\b\b\b\bX", "Xbc"),
        ("a\tb", "a\tb"),
        ("\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m", "red rgb"),
        ("\x1b]0;a title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink"),
        ("\x1b[?2004htext\x1b[?2004l\x1b[?25l", "text"),
        ("\x1bP1$r0m\x1b\\text\x1b(B\x1b=\x1b>", "text"),
        ("a\x00b\x07c\x0e\x0f\x7f\x9bd", "abcd"),
        ("loading...\r\x1b[Kdone", "done"),
        ("loading...\x1b[2K\rdone", "done"),
        ("abcdef\x1b[3D\x1b[1Kx", "   xef"),
        ("abc\x1b[1GX\x1b[3GY", "XbY"),
        ("one\r\ntwo\r\nthree\x1b[2;2H\x1b[1J", "\n  o\nthree"),
        ("abc\x1b[5CX", "abc     X"),
        ("one\r\ntwo\r\n\x1b[2Auno\r\ndos\r\n", "uno\ndos\n"),
        ("a\r\nb\r\n\x1b[1F\x1b[Kc\x1b[1Ed", "a\nc\nd"),
        ("one\r\ntwo\r\nthree\x1b[2;1H\x1b[J2", "one\n2"),
        ("abc\x1b[3D\x1b[2@", "  abc"),
        ("abc\x1b[3D\x1b[2P", "c"),
        ("abc\x1b[3D\x1b[2X", "  c"),
        ("a\r\nc\x1b[1L", "a\n\nc"),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[1M", "a\nc"),
        ("-\x1b[4b|", "-----|"),
        ("ab\x1b7cd\x1b8X", "abXd"),
        ("ab\x1b[scd\x1b[uX", "abXd"),
        ("a\x0bb\x0cc", "a\nb\nc"),
        ("a\r\nb\x1bMx", "ax\nb"),
        ("wide 你好\r\n", "wide 你好\n"),
        ("\x1b]no end\nof it", "no end\nof it"),
        ("\x1b[12", "[12"),
        ("\x1b", ""),
        ("x" * 1000, "x" * 1000),
    ],
)
def test_sequences_are_resolved(written: str, text: str) -> None:
    assert shown(written) == text


def test_a_full_screen_program_is_seen_while_it_runs_and_leaves_nothing() -> None:
    screen = Screen(200, 50)
    screen.feed("before\r\n\x1b[?1049h\x1b[H\x1b[2Jpage one\x1b[5;1Hstatus")
    assert screen.take() == "before\npage one\n\n\n\nstatus"
    assert screen.take() == ""
    screen.feed("\x1b[H\x1b[Kpage two")
    assert screen.take() == "page two\n\n\n\nstatus"
    screen.feed("\x1b[?1049lafter\r\n")
    assert screen.finish() == "after\n"


def test_the_blanks_that_fill_the_rows_of_a_full_screen_are_not_told() -> None:
    screen = Screen(80, 24)
    screen.feed("\x1b[?1049h\x1b[H~" + " " * 79 + "\r\n  two  words" + " " * 20 + "\r\n" + " " * 80)
    assert screen.take() == "~\n  two  words\n"
    screen.feed("\x1b[?1049lblanks  \r\n")
    assert screen.take() == "blanks  \n"


def test_the_rows_with_which_an_editor_fills_a_full_screen_are_one() -> None:
    screen = Screen(80, 24)
    screen.feed("\x1b[?1049h\x1b[Htext\r\n" + "~\x1b[K  \r\n" * 21 + "\r\n-- INSERT --")
    assert screen.take() == "text\n~\n\n-- INSERT --"
    # What a program writes in lines stays as it is.
    assert shown("~\n~\n~\n") == "~\n~\n~\n"


def test_what_is_cleared_is_not_lost() -> None:
    assert shown("step one\r\n\x1b[H\x1b[2J\x1b[3Jstep two\r\n") == "step one\nstep two\n"


def test_what_scrolls_off_can_not_be_written_over() -> None:
    assert shown("1\r\n2\r\n3\r\n4\r\n\x1b[9Ax\x1b[9B", height=3) == "1\n2\nx\n4\n"


def test_text_that_is_told_is_not_told_again_unless_it_changes() -> None:
    screen = Screen(200, 50)
    screen.feed("one\r\ntwo: ")
    assert screen.take() == "one\ntwo: "
    assert screen.take() == ""
    screen.feed("2\r\nthree")
    assert screen.take() == "2\nthree"
    screen.feed("\rTHREE")
    assert screen.take() == "THREE"
    screen.feed("\r\n")
    assert screen.take() == "\n"
    screen.feed("\x1b[3Aone!")
    assert screen.take() == "one!\ntwo: 2\nTHREE\n"
    assert screen.finish() == ""


def test_a_sequence_that_makes_much_of_little_is_bounded() -> None:
    text = shown("\x1b[99999C\x1b[99999@\x1b[99999bx" * 1000)
    assert len(text) < 2_000_000
    assert len(shown("\x1b[9999;9999Hx" * 1000, height=50)) < 1_000_000


plain = st.text(st.sampled_from("ab \né你"), max_size=40).map(lambda text: text.replace("\n", "\r\n"))


@given(st.lists(plain, max_size=30), st.lists(st.booleans(), min_size=30, max_size=30), st.integers(2, 6))
def test_what_is_told_bit_by_bit_is_the_whole(pieces: list[str], tell: list[bool], height: int) -> None:
    screen = Screen(200, height)
    told = ""
    for piece, now in zip(pieces, tell, strict=False):
        screen.feed(piece)
        if now:
            told += screen.take()
    assert told + screen.finish() == "".join(pieces).replace("\r\n", "\n")


sequences = st.sampled_from(
    ["a", "bc", "\r", "\n", "\r\n", "\b", "\t", "\x1b[A", "\x1b[2K", "\x1b[K", "\x1b[31m", "\x1b[3;2H", "\x1b[2J", "\x1b[J",
     "\x1b]0;t\x07", "\x1b]8;;x\x1b\\", "\x1b[?1049h", "\x1b[?1049l", "\x1b7", "\x1b8", "\x1b", "\x1b[", "\x1b]x", "\x1bP", "é", "\x07"]
)  # fmt: skip


@given(st.lists(sequences, max_size=40).map("".join), st.data())
def test_it_does_not_matter_in_which_pieces_it_comes(written: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=8)))
    pieces = [written[start:end] for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert shown(*pieces) == shown(written)


@given(st.lists(sequences, max_size=60).map("".join), st.lists(st.integers(0, 3), max_size=60))
def test_nothing_that_is_written_breaks_it(written: str, model_accepts: list[int]) -> None:
    screen = Screen(10, 4)
    for character, take in zip(written, [*model_accepts, *[1] * len(written)], strict=False):
        screen.feed(character)
        if not take:
            screen.take()
    screen.finish()


@pytest.mark.parametrize("line", ["y" * 79 + "\n", "y\n", "x" * 3000])
def test_any_amount_is_kept_in_bounded_memory_with_its_beginning_and_its_end(line: str) -> None:
    kept = HeadAndTail(100_000)
    kept.add("the beginning\n")
    count = 2_000_000 // len(line)
    for _ in range(count):
        kept.add(line)
    kept.add("the end\n")
    text = mark_gaps(kept.take())
    assert len(text) < 100_000 + 2 * len(line) + 200
    assert text.startswith("the beginning\n")
    assert text.endswith("the end\n")
    assert "characters (" in text
    assert kept.take() == ""


def test_the_number_of_characters_that_were_not_kept_is_right() -> None:
    kept = HeadAndTail(10)
    for number in range(100):
        kept.add(f"{number:02d}\n")
    text = kept.take()
    assert find_gap(text) == (6, len(text) - 6, 288, 96)
    assert mark_gaps(text) == "00\n01\n[288 characters (96 line ends) omitted. They were not kept.]\n98\n99\n"


def test_of_several_gaps_all_that_is_between_them_is_left_out() -> None:
    kept = HeadAndTail(10)
    texts: list[str] = []
    for _ in range(2):
        for number in range(100):
            kept.add(f"{number:02d}\n")
        texts.append(kept.take())
    gap = find_gap("".join(texts))
    assert gap is not None
    assert (gap.characters, gap.lines) == (288 * 2 + 12, 96 * 2 + 4)
    assert find_gap("no gap 1:2") is None


@given(st.binary(max_size=50), st.binary(max_size=50), st.booleans(), st.data())
def test_the_report_is_found_in_any_pieces(before: bytes, after: bytes, errexit: bool, data: st.DataObject) -> None:
    nonce = new_nonce()
    code = b"42e" if errexit else b"42"
    stream = before + b"\x1b]7717;%d;%s\x1f/some where\x1f/bin/python\x07\r\n" % (nonce, code) + after
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    fence = ReportParser()
    fence.expect(nonce)
    reports: list[Report] = []
    out, rest = b"", b""
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        piece, report, behind = fence.feed(stream[start:end])
        if reports:
            rest += piece
        else:
            out += piece
        reports += [report] if report else []
        rest += behind
    assert (out, rest) == (before, after)
    assert reports == [(42, errexit, "/some where", "/bin/python", True)]


@given(st.binary(max_size=50), st.binary(max_size=50), st.sampled_from([b"\r\n", b"\n", b"^J"]), st.data())
def test_an_echo_is_removed_in_any_pieces(before: bytes, after: bytes, end: bytes, data: st.DataObject) -> None:
    typed = b"\\builtin 12345\\\n$'more'\\\n$'and more'; end\n"
    stream = before + typed.replace(b"\n", end) + b"#" + after
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    echo = Echo(typed)
    out = b"".join(echo.feed(stream[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True))
    assert out == before + b"#" + after
    assert echo.found


def test_an_echo_with_something_in_its_midst_takes_nothing_else_away() -> None:
    echo = Echo(b"first 123\nsecond\n")
    assert echo.feed(b"a first 123\r\nsec") == b"a "
    assert echo.feed(b"IN BETWEEN ond\r\n") == b"secIN BETWEEN ond\r\n"
    assert echo.feed(b"first 123\r\n") == b"first 123\r\n"


def test_who_watches_sees_text_and_what_leads_elsewhere_and_no_other_sequence() -> None:
    screen = Screen(80, 24)
    assert screen.feed("\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b[K\r\n10%\x1b[1G20%\r30%\n") == "red\n10%\r20%\r30%\n"
    assert screen.feed("\x1b[2Aup\x1b[?25l\x1b[5;7Hthere\x1b[C\x1b[9d") == "\x1b[2Aup\x1b[5;7Hthere\x1b[9d"
    assert screen.feed("\x1b[H\x1b[2Jclear\x1b[?1049hown\x1b[?1049l\x1b[12Gx") == "\x1b[H\x1b[2Jclear\x1b[?1049hownx"
