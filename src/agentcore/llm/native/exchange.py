"""One request of the native route: how it is made, sent, and read when its answer comes at once."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Generator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

import anyio
import httpx

from agentcore.errors import AuthenticationError, BadRequest, ModelError, ModelUnavailable
from agentcore.llm.caches import PrefixCache
from agentcore.llm.catalog import Features, ModelInfo, model_info
from agentcore.llm.error_bodies import delay_in_body, extract_message, seconds_to_wait
from agentcore.llm.failures import ProviderError, model_error, no_connection, which_key
from agentcore.llm.formats.decoding import DecodedReply
from agentcore.llm.keys import find_key, hide
from agentcore.llm.media import check_media, without_unseen
from agentcore.llm.model import CallContext
from agentcore.llm.native.anthropic import AnthropicWire
from agentcore.llm.native.chat import ChatWire
from agentcore.llm.native.clients import Answered, clients, read_through
from agentcore.llm.native.gemini import GeminiWire
from agentcore.llm.native.responses import ResponsesWire
from agentcore.llm.native.wire import Call, Wire
from agentcore.llm.providers import HOSTS
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.llm.wrapper import ModelRequest
from agentcore.messages import Message

_NO_CONTEXT = CallContext()

DECODE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors that decoding raises where an event does not have the documented shape."""

_COMPATIBLE = ("/openai", "/chat/completions")
"""How the addresses end at which Google speaks as OpenAI does."""
_USERINFO = re.compile(r"//[^/@]*@")
_MOST_SHOWN = 200
LONGEST_ANSWER = 256 * 1024 * 1024
_LONGEST_REFUSAL = 1024 * 1024
_REQUEST_IDS = ("x-request-id", "request-id", "cf-ray", "x-amzn-requestid")

_CLOSED = (httpx.ReadError, httpx.WriteError, httpx.CloseError)
_TAGS = re.compile(r"<(?:script|style).*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


async def prepare(settings: LLMSettings, request: ModelRequest, *, streamed: bool) -> Exchange:
    """Build the HTTP request of a call.

    Raises:
        ModelError: It is known beforehand that there will be no reply.
    """
    sent = anyio.current_time()
    info = await model_info(settings)
    messages = without_unseen(request.messages, info.features)
    _check(messages, settings, info.features)
    wire, base_url, key = _reach(settings, info, streamed=streamed)
    call = Call(settings, messages, request.tools, request.context or _NO_CONTEXT, info.features, streamed)
    # What the user gives goes before what we would send, in whatever case it is written.
    headers = wire.headers(key) | {name.lower(): value for name, value in settings.revealed_headers.items()}
    where, _, query = base_url.partition("?")
    url = wire.url(where.rstrip("/"))
    if query:
        url += ("&" if "?" in url else "?") + query
    return Exchange(settings, info, wire, url, headers, wire.body(call), sent)


_checked: dict[tuple[str, str | None, str, Features], PrefixCache[Message]] = {}
"""The messages that were checked already, by everything the check depends on; without keys."""


def _check(messages: Sequence[Message], settings: LLMSettings, features: Features) -> None:
    """Look at the media of the messages that are new: looking at all in each step would cost more with each step."""
    what = (settings.model, settings.base_url, settings.api_mode, features)
    checked = _checked.get(what)
    if checked is None:
        public = LLMSettings(model=settings.model, base_url=settings.base_url, api_mode=settings.api_mode)

        def check(new: Sequence[Message]) -> bytes:
            check_media(new, public, features)
            return b""

        checked = _checked[what] = PrefixCache(check)
    checked(messages[:])


def _reach(settings: LLMSettings, info: ModelInfo, *, streamed: bool) -> tuple[Wire, str, str | None]:
    """Return the interface, the address and the key."""
    host = HOSTS[settings.provider]
    base_url = host.address(settings.base_url)
    if base_url is None:
        raise BadRequest(
            f"{settings.model}: it is not known where this server is. Pass LLM(base_url=...)"
            + (f", or set {host.url_variables[0]}." if host.url_variables else "."),
            model=settings.model,
        )
    key = find_key(settings)
    if key is None and host.needs_key and base_url == host.base_url:
        raise AuthenticationError(f"{settings.model}: {which_key(settings)}", model=settings.model)
    if host.wire == "anthropic":
        return AnthropicWire(settings), base_url, key
    if host.wire == "gemini" and not base_url.partition("?")[0].rstrip("/").endswith(_COMPATIBLE):
        return GeminiWire(settings, streamed), base_url, key
    mode = settings.api_mode
    if mode == "auto":
        # What reasons there remembers its reasoning only so.
        thinks = host.responses and base_url == host.base_url and info.features.reasoning
        mode = "responses" if info.features.mode == "responses" or thinks else "chat"
    return (ResponsesWire(host) if mode == "responses" else ChatWire(host)), base_url, key


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, and how its answer is read."""

    settings: LLMSettings
    info: ModelInfo
    wire: Wire
    url: str
    headers: dict[str, str]
    body: bytes
    sent: float
    """When it was made, by the event loop's clock."""

    async def send(self) -> Answered:
        """Send it and give the answer, once its head is there and says that there is one."""
        with self.translate_errors():
            answered = await (await clients()).post(self.url, self.headers, self.body)
            if answered.response.status_code < 300:
                return answered
            try:
                # Half of an error still says which one it is.
                body = bytearray()
                with suppress(httpx.HTTPError, httpx.StreamError):
                    await _read(answered.response, body, _LONGEST_REFUSAL)
                raise _refused(self.settings, answered.response, bytes(body[:_LONGEST_REFUSAL]))
            finally:
                await answered.aclose()

    async def ask(self) -> DecodedReply:
        """Send it and read an answer that comes at once."""
        answered = await self.send()
        try:
            body = bytearray()
            with self.translate_errors():
                await _read(answered.response, body, LONGEST_ANSWER)
            if len(body) > LONGEST_ANSWER:
                raise self.unreadable(answered.response, b"more bytes than any reply has")
            return self.answer(answered.response, bytes(body))
        finally:
            await answered.aclose()

    @contextmanager
    def translate_errors(self) -> Generator[None]:
        """Raise what goes wrong with a connection as errors of this library."""
        try:
            yield
        except httpx.UnsupportedProtocol as error:
            raise BadRequest(f"{self.settings.model}: {error}", model=self.settings.model) from error
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError) as error:
            raise _broken_connection(self.settings, error, self.url) from error
        except httpx.InvalidURL as error:
            url = _USERINFO.sub("//", self.url)
            raise BadRequest(
                f"{self.settings.model}: {url!r} is no address: {str(error).rstrip('.')}.", model=self.settings.model
            ) from None

    def answer(self, response: httpx.Response, body: bytes) -> DecodedReply:
        """Read a whole answer."""
        try:
            value: Any = json.loads(body)
        except (ValueError, RecursionError):
            raise self.unreadable(response, body) from None
        if not isinstance(value, dict):
            raise self.unreadable(response, body)
        try:
            return self.wire.answer(self.settings, cast("dict[str, Any]", value))
        except DECODE_ERRORS as error:
            raise self.unreadable(response, body) from error

    def reply(self, answer: DecodedReply, *, began: float | None = None) -> Reply:
        """Put a price on an answer; `began` is when its first piece came."""
        latency = anyio.current_time() - self.sent
        first = None if began is None else began - self.sent
        return answer.priced(self.settings, self.info, latency=latency, first=first)

    def unreadable(self, response: httpx.Response, body: bytes) -> ModelUnavailable:
        """Return the error for an answer that cannot be parsed: a page of a proxy, half a file."""
        kind = hide(response.headers.get("content-type", "no content type"), self.settings)[:_MOST_SHOWN]
        return ModelUnavailable(
            f"{self.settings.model}: what {response.url.host} answered can't be read ({kind}): {self._shown(body)}. "
            "Check base_url, and what stands between here and there.",
            model=self.settings.model,
            status=response.status_code,
        )

    def _shown(self, body: bytes) -> str:
        # More is looked at than is shown: half a key at the end would not be known for one.
        text = hide(" ".join(body[: 20 * _MOST_SHOWN].decode("utf-8", "replace").split()), self.settings)
        return repr(text[:_MOST_SHOWN]) if text else "nothing"


async def _read(response: httpx.Response, body: bytearray, longest: int) -> None:
    """Append the body, or a little more than its first `longest` bytes."""
    async with aclosing(read_through(response)) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > longest:
                break


def _refused(settings: LLMSettings, response: httpx.Response, body: bytes) -> ModelError:
    """Return the error for an answer that is not a reply."""
    status, headers = response.status_code, response.headers
    if response.has_redirect_location:
        # Not followed: a key goes only where the user said.
        return BadRequest(
            f"{settings.model}: {response.url} sends on to {hide(headers['location'], settings)!r}. If that is the right place, write it "
            "into LLM(base_url=...).",
            model=settings.model,
            status=status,
        )
    text = hide(body.decode("utf-8", "replace").strip(), settings)  # a page is cut where it is read
    message, codes, delay = _read_error(text)
    seconds = seconds_to_wait(headers)
    return model_error(
        ProviderError(
            status=status,
            message=message or f"HTTP {status}",
            codes=codes,
            retry_after=delay if seconds is None else seconds,
            request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        ),
        settings,
    )


def _broken_connection(settings: LLMSettings, error: Exception, url: str) -> ModelError:
    """Return the error for a connection that failed or broke."""
    host = httpx.URL(url).netloc.decode()
    if isinstance(error, httpx.TimeoutException):
        return no_connection(settings, "it took too long to connect", host=host)
    # Some libraries say only that the connection broke: what it was about is further inside.
    inside: BaseException | None = error
    while inside is not None and not isinstance(inside, ssl.SSLCertVerificationError):
        inside = inside.__cause__ or inside.__context__
    reason = str(inside or error) or (
        "the other side closed it" if isinstance(error, _CLOSED) else type(error).__name__
    )
    return no_connection(settings, reason, host=host)


def _read_error(text: str) -> tuple[str, str, float | None]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        if text[:200].lstrip().lower().startswith(("<!doctype", "<html", "<?xml")):
            return f"a page instead of an answer: {' '.join(_TAGS.sub(' ', text[:20_000]).split())[:300]}", "", None
        return text, "", None
    return *extract_message(body), delay_in_body(body)
