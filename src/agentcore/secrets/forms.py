"""The forms in which a secret may be written down: as it is, or as programs encode it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

from agentcore.errors import SecretError

SHORTEST = 6
"""The fewest characters that are masked; no form has fewer either."""

_SHORTEST_LINE = 16
"""The fewest characters of a line that is masked on its own: a shorter one may stand in any text."""
_PEM_HEADER = re.compile("-----(BEGIN|END) [A-Z0-9 ]+-----")

# What percent-encoders leave alone, from the strictest to the laxest: `quote` with nothing safe, `quote` as it comes,
# JavaScript's encodeURIComponent, the user part of an address, its path.
_SAFE_IN_URLS = ("", "/", "!'()*", "!$&'()*+,;=", "!$&'()*+,;=:@/")
_PERCENT = re.compile("%[0-9A-F]{2}")
_JSON_HEX = re.compile(r"\\u[0-9a-f]{4}")


def check_value(name: str, value: str) -> None:
    """Raise `SecretError`, which tells the reason and not the value, where a value can't be masked."""
    if len(value) < SHORTEST:
        reason = f"it has fewer than {SHORTEST} characters, and masking those would tear ordinary words apart"
    elif not value.strip():
        reason = "it is blank, and masking it would tear every text apart"
    elif not _is_unicode(value):
        reason = "it is not text that UTF-8 can carry"
    else:
        return
    raise SecretError(
        f"The value of secret {name!r} can't be used: {reason}. "
        "Unmasked it would stand readable in the log; use another value."
    )


def encoded_forms(value: str) -> Iterator[str]:
    """Yield every form but the value itself; a form may come twice, or be the value again."""
    stripped = value.strip()  # a file's content, say, that is shown without its last line's end
    variants = [value, value.replace("\n", "\r\n")]  # which is how a terminal ends a line
    if len(stripped) >= SHORTEST:
        variants += [stripped, stripped.replace("\n", "\r\n")]
    for variant in dict.fromkeys(variants):
        yield from _text_forms(variant)
        yield from _binary_forms(variant.encode())
    for line in _secret_lines(stripped):
        yield from _text_forms(line)


def _secret_lines(value: str) -> Iterator[str]:
    """Yield the lines of a value of several that can be found on their own: each may be shown with a number before it, say."""
    lines = value.splitlines()
    if len(lines) > 1:
        for line in map(str.strip, lines):
            if len(line) >= _SHORTEST_LINE and not _PEM_HEADER.fullmatch(line):
                yield line


def _text_forms(value: str) -> Iterator[str]:
    forms = (value, *_shell_forms(value), *_json_forms(value), *_python_forms(value), *_url_forms(value))
    for form in dict.fromkeys(forms):
        yield form
        # The arguments of a call are JSON, which is what watchers see of them.
        yield _json_escaped(form, ascii_only=True)
        yield _json_escaped(form, ascii_only=False)


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_forms(value: str) -> Iterator[str]:
    for ascii_only in (True, False):
        once = _json_escaped(value, ascii_only)
        dialects = (
            once,
            _JSON_HEX.sub(lambda match: "\\u" + match[0][2:].upper(), once),
            once.replace("/", "\\/"),  # PHP
            once.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),  # Go
        )
        for form in dialects:
            yield form
            for again in (True, False):
                yield _json_escaped(form, again)  # JSON as a string inside JSON


def _json_escaped(value: str, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only)[1:-1]


def _python_forms(value: str) -> Iterator[str]:
    """Yield what `repr` makes of it, and of its bytes: so a KeyError tells it, and a dictionary that is printed."""
    for written in (repr, ascii, _bytes_repr):
        # What else is in a text decides which quotes stand around it, and so whether a single one is escaped.
        for quote_mark in ("'", "\\'"):
            once = _python_escaped(value, written, quote_mark)
            yield once
            yield _json_escaped(once, ascii_only=True)
            for again in ("'", "\\'"):
                yield _python_escaped(once, repr, again)  # the `repr` of an error that has another one's text


def _bytes_repr(value: str) -> str:
    return repr(value.encode())[1:]


def _python_escaped(value: str, written: Callable[[str], str], quote_mark: str) -> str:
    return quote_mark.join(written(part)[1:-1] for part in value.split("'"))


def _shell_forms(value: str) -> Iterator[str]:
    """Yield what shells (with `set -x`, say) and `shlex` write in single quotes."""
    for quote_mark in ("'\\''", "'\"'\"'"):
        yield value.replace("'", quote_mark)


def _url_forms(value: str) -> Iterator[str]:
    for safe in _SAFE_IN_URLS:
        for form in (quote(value, safe), quote_plus(value, safe)):
            yield form
            yield _PERCENT.sub(lambda match: match[0].lower(), form)


def _binary_forms(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield data.hex().upper()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        # Encoded on its own, or with the line's end that `echo` adds: to the last character, padding included.
        for alone in (data, data + b"\n"):
            padded = encode(alone).decode()
            yield padded
            yield padded.rstrip("=")
        # Somewhere inside longer data: six bits are a character, so there are three alignments, and the characters at
        # both ends that hold bits of what stands around the value are not its own.
        for before in range(3):
            text = encode(bytes(before) + data).decode()
            yield text[(8 * before + 5) // 6 : 8 * (before + len(data)) // 6]
