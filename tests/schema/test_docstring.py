"""Docstrings in the three styles people write."""

from __future__ import annotations

import pytest

from agentcore.schema import read_docstring

GOOGLE = """Look a word up.

    Exact spelling matters: it is not corrected.

    Args:
        word (str): The word,
            in lower case.
        language: As in "en: British".

    Returns:
        Its meaning.

    Raises:
        KeyError: there is no such word.
    """

NUMPY = """Look a word up.

    Exact spelling matters: it is not corrected.

    Parameters
    ----------
    word : str
        The word,
        in lower case.
    language : str, optional
        As in "en: British".

    Returns
    -------
    str
        Its meaning.
    """

REST = """Look a word up.

    Exact spelling matters: it is not corrected.

    :param word: The word,
        in lower case.
    :param str language: As in "en: British".
    :returns: Its meaning.
    :raises KeyError: there is no such word.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_every_style_gives_the_same_text_and_parameters(docstring: str) -> None:
    described = read_docstring(docstring)
    assert described.text == (
        "Look a word up.\n\nExact spelling matters: it is not corrected.\n\nReturns: Its meaning."
    )
    assert described.parameters == {"word": "The word,\nin lower case.", "language": 'As in "en: British".'}


def test_the_errors_of_a_function_are_not_for_the_model() -> None:
    assert "KeyError" not in read_docstring(GOOGLE).text


def test_examples_stay_with_the_text() -> None:
    described = read_docstring(
        """Add.

        Args:
            a: One.

        Examples:
            >>> add(1, 2)
            3
        """
    )
    assert described.text == "Add.\n\nExamples:\n>>> add(1, 2)\n3"
    assert described.parameters == {"a": "One."}


def test_a_docstring_in_no_style_is_all_text() -> None:
    text = "Do this: that.\n\nWarning:\n    Not twice.\n\n- a: b"
    described = read_docstring(text)
    assert described.text == text
    assert described.parameters == {}


def test_a_docstring_that_begins_with_its_parameters_has_no_text() -> None:
    described = read_docstring("""
        Args:
            x: The one.
    """)
    assert described.text == ""
    assert described.parameters == {"x": "The one."}


@pytest.mark.parametrize("docstring", [None, "", "   \n  "])
def test_no_docstring_says_nothing(docstring: str | None) -> None:
    described = read_docstring(docstring)
    assert (described.text, dict(described.parameters)) == ("", {})
