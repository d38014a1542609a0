"""The settings of an `LLM`."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, SecretStr, field_validator, model_validator

from agentcore._value import Value
from agentcore.llm.model import Features
from agentcore.llm.providers import full_name
from agentcore.llm.retry import RetryPolicy

_Seconds = Annotated[float, Field(gt=0)]
_Wait = Annotated[float, Field(ge=0)]
_Price = Annotated[Decimal, Field(ge=0)] | None


def _hidden(value: SecretStr | str) -> SecretStr:
    return SecretStr(value) if isinstance(value, str) else value


_Secret = Annotated[SecretStr | str, AfterValidator(_hidden)]
"""Given as text by those who type it, held as a secret."""

_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)
_NOT_SECRET = re.compile(r"max_tokens|_tokens$", re.IGNORECASE)

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")
_NOT_YOURS = frozenset({"content-length", "expect", "transfer-encoding"})
"""Headers that say how a request is sent: one that is not sent so is waited for in vain."""


def _refuse_secrets(names: Iterable[str]) -> None:
    for name in names:
        if _SECRET_NAME.search(name) and not _NOT_SECRET.search(name):
            raise ValueError(
                f"{name!r} looks like a credential, and this is recorded. Pass it as api_key, in secret_headers, "
                "or in the environment."
            )


class LLMSettings(Value):
    """A model, where it is reached, and how it is asked."""

    # What is given may be a key in the wrong place: what is wrong with it is said without it.
    model_config = ConfigDict(hide_input_in_errors=True)

    positional_fields = ("model",)

    model: str = Field(kw_only=False)
    """The provider and the model, as in "anthropic/claude-sonnet-4-5" or "openai:gpt-5"; with `base_url`, a bare name is
    one that the server there knows."""
    base_url: str | None = None
    """Where the provider is, if not where it usually is: a server of your own, a proxy, a gateway."""
    api_key: _Secret | None = Field(default=None, exclude=True, repr=False)
    """The key. Without one, the provider's usual environment variable is read. Never shown, dumped or recorded."""
    api_mode: Literal["auto", "chat", "responses"] = "auto"
    """Which of the provider's interfaces to use; "auto" is Responses for the models of OpenAI that reason."""
    route: Literal["auto", "native", "litellm"] = "auto"
    """Who speaks to the provider: plain HTTP where the provider has an interface that is spoken here, else litellm.
    With `provider_options`, which are litellm's, "auto" is litellm."""

    temperature: Annotated[float, Field(ge=0)] | None = None
    """How random; None leaves it to the provider, as with everything here."""
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """The part of the likeliest words to choose from."""
    max_output_tokens: Annotated[int, Field(gt=0)] | None = None
    """The longest reply, thinking included."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much to think, for models that do."""
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    """How many of the likeliest tokens to tell at each place, besides the one that was chosen; None asks for nothing."""
    service_tier: str | None = None
    """Which service to ask for, in the provider's word, as in "flex" or "priority"."""
    prompt_caching: bool = True
    """Mark the parts of a prompt to cache for providers that want marks: tools, system prompt, and the last turn."""

    timeout: _Seconds = 300.0
    """Seconds for one attempt: until the reply is there or, streamed, until it begins. The whole call with its retries
    has the caller's deadline (`anyio.fail_after`)."""
    stream_idle_timeout: _Seconds = 300.0
    """Seconds of silence after which a stream that has begun is given up. Models that think are silent for long."""
    num_retries: Annotated[int, Field(ge=0)] = 5
    """Attempts after the first, for errors that pass."""
    retry_min_wait: _Wait = 8.0
    """Seconds before the second attempt, where the provider names no time."""
    retry_max_wait: _Wait = 64.0
    """The longest of the waits, which grow."""
    retry_multiplier: Annotated[float, Field(ge=1)] = 2.0
    """How much they grow."""

    input_cost_per_token: _Price = None
    """US dollars; in place of the price list, together with `output_cost_per_token`."""
    output_cost_per_token: _Price = None
    """US dollars; in place of the price list, together with `input_cost_per_token`."""
    cache_read_cost_per_token: _Price = None
    """US dollars, of input tokens that the provider had kept; without it, what other input costs."""
    cache_write_cost_per_token: _Price = None
    """US dollars, of input tokens that the provider keeps from now on; without it, what other input costs."""
    features: Features = Field(default_factory=Features)
    """Features that override the list of models; None leaves a feature to the list."""

    native_tool_calling: bool = True
    """True if the model can call tools. If not, its prompt explains how to call them in text."""
    streaming: bool = True
    """Ask for streams. If not, as for servers that cannot stream, the deltas of a reply come together at its end."""
    drop_params: bool = True
    """Leave out settings that the model does not accept, instead of failing."""
    extra_headers: dict[str, str] = {}
    """Headers to send besides. Shown and recorded: what is secret belongs in `secret_headers`."""
    secret_headers: dict[str, _Secret] = Field(default={}, exclude=True, repr=False)
    """Headers that carry credentials. Never shown, dumped or recorded."""
    extra_body: dict[str, JsonValue] = {}
    """Fields to send besides, where the provider takes JSON."""
    provider_options: dict[str, JsonValue] = {}
    """Options of litellm that have no setting here, as in {"api_version": "2025-01-01"}; a call with some goes through
    it. Shown and recorded."""

    @model_validator(mode="before")
    @classmethod
    def _say_the_provider(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        if not isinstance(given.get("model"), str):
            return given
        return {**given, "model": full_name(given["model"], compatible=bool(given.get("base_url")))}

    @field_validator("base_url")
    @classmethod
    def _an_address_without_a_key(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.strip().partition("#")[0]
        address = urlsplit(value)
        if "@" in address.netloc:
            raise ValueError("An address with a name and password would be recorded. Pass api_key or secret_headers.")
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise ValueError(f"{value!r} is no address: write it with its scheme, as in 'http://localhost:11434/v1'.")
        try:
            _ = address.port
        except ValueError as error:
            raise ValueError(f"{value!r} is no address: {error}.") from None
        _refuse_secrets(name for name, _ in parse_qsl(address.query, keep_blank_values=True))
        where, mark, query = value.partition("?")
        return f"{where.rstrip('/')}{mark}{query}"

    @field_validator("extra_headers", "provider_options")
    @classmethod
    def _nothing_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        _refuse_secrets(value)
        return value

    @field_validator("extra_headers", "secret_headers")
    @classmethod
    def _headers_that_can_be_sent(cls, value: dict[str, SecretStr | str]) -> dict[str, SecretStr | str]:
        for name, given in value.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a header: it has a character that may not be in one.")
            if name.lower() in _NOT_YOURS:
                raise ValueError(f"{name!r} is not for you to set: it says how a request is sent. Leave it out.")
            if not _HEADER_VALUE.fullmatch(_hidden(given).get_secret_value().strip()):
                raise ValueError(
                    f"The value of {name!r} can't be sent: only visible ASCII characters and blanks can be in a header."
                )
        return value

    @model_validator(mode="after")
    def _both_prices(self) -> Self:
        if (self.input_cost_per_token is None) != (self.output_cost_per_token is None):
            raise ValueError("A price is for both ways: give input_cost_per_token and output_cost_per_token, or none.")
        cached = (self.cache_read_cost_per_token, self.cache_write_cost_per_token)
        if self.input_cost_per_token is None and cached != (None, None):
            raise ValueError(
                "A price of cached input goes with the others: give input_cost_per_token and output_cost_per_token too."
            )
        return self

    def __getstate__(self) -> dict[Any, Any]:
        # A pickle is a record like others: without keys.
        state = super().__getstate__()
        secret = {name: field.default for name, field in LLMSettings.model_fields.items() if field.exclude}
        return {
            **state,
            "__dict__": {**state["__dict__"], **secret},
            "__pydantic_fields_set__": state["__pydantic_fields_set__"] - secret.keys(),
        }

    @property
    def provider(self) -> str:
        """The provider's name, as in "anthropic"."""
        return self.model.partition("/")[0]

    @property
    def revealed_key(self) -> str | None:
        """The key as text, to be sent and not to be kept."""
        return None if self.api_key is None else _hidden(self.api_key).get_secret_value()

    @property
    def revealed_headers(self) -> dict[str, str]:
        """The headers besides, secret ones as text, to be sent and not to be kept."""
        secret = {name: _hidden(value).get_secret_value() for name, value in self.secret_headers.items()}
        return {name: value.strip() for name, value in (self.extra_headers | secret).items()}

    @property
    def retry_policy(self) -> RetryPolicy:
        """How failed attempts are tried again."""
        return RetryPolicy(
            retries=self.num_retries,
            min_wait=self.retry_min_wait,
            max_wait=self.retry_max_wait,
            multiplier=self.retry_multiplier,
        )
