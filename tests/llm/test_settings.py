from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import pytest
from pydantic import ValidationError

from agentcore.llm import LLM

KEY = "sk-very-secret-key"


def llm_with_a_key() -> LLM:
    return LLM(
        model="openai/gpt-5",
        base_url="http://localhost:1/v1/",
        api_key=KEY,
        secret_headers={"X-Gateway-Key": "gateway-secret"},
        extra_headers={"X-Team": "core"},
        temperature=0.5,
        input_cost_per_token=Decimal("0.000001"),
        output_cost_per_token=Decimal("0.000002"),
        cache_read_cost_per_token=Decimal("0.0000001"),
        cache_write_cost_per_token=Decimal("0.00000125"),
        num_retries=2,
        retry_min_wait=1,
        retry_max_wait=9,
        retry_multiplier=3,
    )


def test_no_key_is_shown_dumped_or_recorded() -> None:
    llm = llm_with_a_key()
    written = [repr(llm), str(llm), str(llm.model_dump()), llm.model_dump_json(), str(llm.record())]
    assert not [text for text in written if KEY in text or "gateway-secret" in text or "api_key" in text]


def test_a_recorded_model_is_restored_without_its_key_and_with_its_prices_and_retries() -> None:
    restored = LLM.model_validate(llm_with_a_key().record())
    assert restored == llm_with_a_key().model_copy(update={"api_key": None, "secret_headers": {}})
    assert restored.api_key is None
    assert restored.base_url == "http://localhost:1/v1"
    policy = restored.retry_policy
    assert (policy.retries, policy.min_wait, policy.max_wait, policy.multiplier) == (2, 1, 9, 3)


def test_a_changed_copy_is_checked_and_keeps_the_key() -> None:
    llm = llm_with_a_key().model_copy(update={"model": "anthropic:claude-sonnet-4-5"})
    assert llm.model == llm.name == "anthropic/claude-sonnet-4-5"
    assert llm.provider == "anthropic"
    assert llm.revealed_key == KEY
    assert KEY not in repr(llm.api_key)
    assert llm_with_a_key().model_copy() == llm_with_a_key()
    with pytest.raises(ValidationError):
        llm.model_copy(update={"temperature": -1})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "gpt-5"}, "names no provider"),
        ({"base_url": "localhost:11434"}, "its scheme"),
        ({"base_url": "https://user:pass@example.com/v1"}, "would be recorded"),
        ({"extra_headers": {"Authorization": "Bearer x"}}, "looks like a credential"),
        ({"provider_options": {"aws_secret_access_key": "x"}}, "looks like a credential"),
        ({"input_cost_per_token": 1}, "for both ways"),
        ({"cache_read_cost_per_token": 1}, "goes with the others"),
        ({"features": {"visoin": True}}, "Extra inputs"),
        ({"modle": "x"}, "Extra inputs"),
        ({"base_url": "http://localhost:70000/v1"}, "is no address: Port out of range"),
        ({"base_url": "http:///v1"}, "is no address"),
        ({"base_url": "http://localhost/v1?api_key=x"}, "looks like a credential"),
        ({"extra_headers": {"X Y": "x"}}, "is no name of a header"),
        ({"extra_headers": {"X-Y": "a\nHost: elsewhere"}}, "can't be sent"),
        ({"secret_headers": {"X-Y": "\u2026"}}, "can't be sent"),
        ({"extra_headers": {"Transfer-Encoding": "chunked"}}, "how a request is sent"),
        ({"secret_headers": {"content-length": "5"}}, "how a request is sent"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        LLM.model_validate({"model": "openai/gpt-5"} | settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "gpt-5", "api_key": KEY},
        {"model": "openai/gpt-5", "api_key": [KEY]},
        {"api_key": KEY},
        {"model": "openai/gpt-5", "base_url": f"https://user:{KEY}@example.com/v1"},
        {"model": "openai/gpt-5", "extra_headers": {"Authorization": KEY}},
        {"model": "openai/gpt-5", "secret_headers": {"X-Key": f"{KEY}\n"}, "temperature": -1},
        {"model": "openai/gpt-5", "secret_headers": {"X-Key": f"{KEY}\u2026"}},
    ],
)
def test_what_is_refused_is_not_shown_for_it_may_be_a_key(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as raised:
        LLM.model_validate(settings)
    assert KEY not in f"{raised.value} {raised.value!r}"


def test_a_pickle_has_no_key() -> None:
    llm = llm_with_a_key()
    pickled = pickle.dumps(llm)
    assert KEY.encode() not in pickled
    assert b"gateway-secret" not in pickled
    restored = pickle.loads(pickled)
    assert restored == LLM.model_validate(llm.record())
    assert restored.model_fields_set == llm.model_fields_set - {"api_key", "secret_headers"}
    assert copy.deepcopy(llm).revealed_key == KEY


def test_an_address_keeps_its_query_and_loses_what_is_not_sent() -> None:
    def address(given: str) -> str | None:
        return LLM(model="m", base_url=given).base_url

    assert address(" http://localhost:1/v1/ \n") == "http://localhost:1/v1"
    assert address("http://localhost:1/v1/?api-version=2/#x") == "http://localhost:1/v1?api-version=2/"
