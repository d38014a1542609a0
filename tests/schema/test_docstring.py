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


EXAMPLES = """Add.

    Args:
        a: One.

    Examples:
        >>> add(1, 2)
        3
    """
NO_STYLE = "Do this: that.\n\nWarning:\n    Not twice.\n\n- a: b"


@pytest.mark.parametrize(
    ("docstring", "text", "parameters"),
    [
        (EXAMPLES, "Add.\n\nExamples:\n>>> add(1, 2)\n3", {"a": "One."}),
        (NO_STYLE, NO_STYLE, {}),
        ("\n    Args:\n        x: The one.\n", "", {"x": "The one."}),
        (None, "", {}),
        ("", "", {}),
        ("   \n  ", "", {}),
    ],
)
def test_examples_stay_with_the_text_and_parts_may_be_missing(
    docstring: str | None, text: str, parameters: dict[str, str]
) -> None:
    described = read_docstring(docstring)
    assert (described.text, described.parameters) == (text, parameters)
