"""Bodies that are no JSON, or JSON that hurts."""

from __future__ import annotations

import pytest

from agentcore_serve.json_body import check_json
from agentcore_serve.refused import Refused


@pytest.mark.parametrize("body", [b"{}", b'{"a": "\xc3\xa9\\ud83d\\ude00", "b": [1.5, null]}', b"[" * 100 + b"]" * 100])
def test_json_is_taken(body: bytes) -> None:
    check_json(body)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"s3cr3t", 400),
        (b'{"s3cr3t": ', 400),
        (b'{"a": "\xff s3cr3t"}', 400),
        (b'{"a": "\xed\xa0\x80"}', 400),
        (b'{"a": "\\ud800 s3cr3t"}', 400),
        (b'{"a": NaN}', 400),
        (b'{"a": -Infinity}', 400),
        ('{"a": 1}'.encode("utf-16"), 400),
        (b"[" * 101 + b"]" * 101, 422),
        (b'{"a":' * 150 + b"1" + b"}" * 150, 422),
        (b"[" * 1_000_000, 422),
    ],
)
def test_what_is_no_json_or_too_deep_is_refused_without_repeating_it(body: bytes, status: int) -> None:
    with pytest.raises(Refused) as refused:
        check_json(body)
    assert refused.value.status == status
    assert "s3cr3t" not in f"{refused.value.detail}{refused.value.errors}"
