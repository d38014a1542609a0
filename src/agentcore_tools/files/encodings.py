"""Guessing the encoding of text that is neither UTF-8 nor begins with a mark."""

from __future__ import annotations

from typing import Final

# The older encodings that files are still met in. Others fit by chance more often than by right.
_USUAL: Final = ("cp1252", "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1251", "koi8_r", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256")  # fmt: skip
_MOST_BYTES: Final = 64 * 1024


def likely_encodings(data: bytes) -> list[str]:
    """Return the encodings that the bytes may be text in, the likeliest first."""
    # Off the start-up path: loading it takes long, and few files need it.
    from charset_normalizer import from_bytes  # noqa: PLC0415

    # Lines of ASCII are the same in all of them. A line end is never a part of another character.
    sample = b"\n".join(line for line in data.split(b"\n") if not line.isascii())[:_MOST_BYTES]
    if len(sample) == _MOST_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    matches = list(from_bytes(sample, cp_isolation=list(_USUAL)))
    # Of several that are as good as each other, that of Western Europe and America is the most frequent.
    best = [match for match in matches if (match.chaos, match.coherence) == (matches[0].chaos, matches[0].coherence)]
    usual = any("cp1252" in match.could_be_from_charset for match in best)
    return [*(["cp1252"] if usual or not matches else []), *(match.encoding for match in matches), "cp1252"]
