from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.errors import SecretError
from agentcore.events import ActionEvent
from agentcore.secrets import SecretRegistry, find_masks, unmask


async def test_masks_give_way_to_values_in_texts_and_keys() -> None:
    registry = SecretRegistry({"USER": "somebody", "TOKEN": "hunter2!"})
    masked: dict[str, Any] = {"command": "login <secret:USER> <secret:TOKEN>", "<secret:USER>": [1, "<secret:USER>"]}
    assert await unmask(masked, registry.get) == {"command": "login somebody hunter2!", "somebody": [1, "somebody"]}


async def test_a_value_without_masks_comes_back_as_the_same_object() -> None:
    value: dict[str, Any] = {"command": "ls <secret>", "n": 1}
    assert await unmask(value, SecretRegistry().get) is value


async def test_all_that_is_missing_is_named() -> None:
    async def fail() -> str:
        raise TimeoutError

    registry = SecretRegistry({"SLOW": fail, "HERE": "is-here"})
    with pytest.raises(SecretError) as caught:
        await unmask(["<secret:GONE> <secret:HERE>", "<secret:SLOW>", "<secret:HERE:encoded>"], registry.get)
    text = str(caught.value)
    assert "'GONE' (No secret 'GONE' is registered" in text
    assert "'SLOW' (Secret 'SLOW' can't be had: its source raised TimeoutError.)" in text
    assert "'HERE' (it stood there encoded" in text
    assert "is-here" not in text


async def test_masks_of_other_names_are_somebody_s_words() -> None:
    registry = SecretRegistry({"TOKEN": "hunter2!"})
    restored = await unmask("write <secret:NAME>, not <secret:TOKEN>", registry.get, names={"TOKEN"})
    assert restored == "write <secret:NAME>, not hunter2!"


async def test_a_value_that_looks_like_a_mask_is_not_looked_into() -> None:
    registry = SecretRegistry({"A": "<secret:B>", "B": "value-of-b"})
    assert await unmask("<secret:A>", registry.get) == "<secret:B>"


words = st.text("ab", max_size=8)
secrets = st.lists(st.text("ab", min_size=6, max_size=7), min_size=1, max_size=3, unique=True)


@st.composite
def arguments_with_secrets(draw: st.DrawFn) -> tuple[list[str], dict[str, Any]]:
    values = draw(secrets)
    encoded = [base64.b64encode(value.encode()).decode() for value in values] + [
        value.encode().hex() for value in values
    ]
    typed = ["<secret:S0>", "<secret:S1>", "<secret:S0:encoded>"]
    piece = st.sampled_from([*values, *values, *encoded, *typed]) | words
    texts = st.lists(piece, max_size=4).map("-".join)
    leaf: st.SearchStrategy[Any] = texts | st.integers() | st.none()
    items = st.lists(leaf, max_size=2) | st.dictionaries(texts, leaf, max_size=2)
    return values, draw(st.dictionaries(texts, leaf | items, max_size=4))


@given(case=arguments_with_secrets())
def test_arguments_come_back_as_they_were_or_not_at_all(case: tuple[list[str], dict[str, Any]]) -> None:
    values, arguments = case
    registry = SecretRegistry({f"S{number}": value for number, value in enumerate(values)})
    typed = find_masks(arguments)
    action = ActionEvent(reply_id="r", tool_name="t", call_id="c", arguments=arguments, typed_masks=typed)
    masked = registry.masker.mask_event(action)
    assert not any(value in text for value in values for text in all_texts(masked.arguments))
    if any(":encoded" in mask for mask in find_masks(masked.arguments) if mask not in typed):
        with pytest.raises(SecretError, match="it stood there encoded"):
            run_to_its_end(unmask(masked.arguments, registry.get, typed_masks=typed))
    else:
        assert run_to_its_end(unmask(masked.arguments, registry.get, typed_masks=typed)) == arguments


def all_texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *all_texts(item))]
    return [text for item in value for text in all_texts(item)] if isinstance(value, list) else []


def run_to_its_end(awaitable: Any) -> Any:
    """Run what never has to wait: static values are there."""
    try:
        awaitable.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waited")
