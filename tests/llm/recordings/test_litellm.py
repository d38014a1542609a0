"""What providers really answered, through litellm: what the native route reads too is the same but for what is listed."""

from __future__ import annotations

from typing import Any

import pytest
from blockbuster import BlockBuster

from recorded_judgement import REASONS, ask, different, lost, spoken
from recorded_traffic import HOW_TO_GET, Recording, Wire, load, recordings_file, serve_recordings

RECORDINGS = [recording for recording in load(recordings_file()) if spoken(recording, "litellm")]

pytestmark = [
    pytest.mark.skipif(not RECORDINGS, reason=HOW_TO_GET),
    pytest.mark.xdist_group("litellm"),
    # litellm silences these of its own when it is imported, and pytest undoes that.
    pytest.mark.filterwarnings("ignore:.*Accessing the .* attribute on the instance is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """On asyncio, as litellm does."""
    return "asyncio"


@pytest.fixture(autouse=True, scope="module")
def _litellm_looks_for_certificates(_blockbuster: BlockBuster) -> None:
    """Once per client it asks whether the file of SSL_CERT_FILE is there: a stat, on the event loop."""
    _blockbuster.functions["os.stat"].can_block_in(
        "litellm/llms/custom_httpx/http_handler.py", {"get_ssl_verify", "get_ssl_configuration"}
    )


def of(wire: Wire) -> list[Recording]:
    return [recording for recording in RECORDINGS if recording.wire == wire]


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic", "gemini"])
async def test_everything_arrives_but_for_what_litellm_loses(wire: Wire) -> None:
    wrong: dict[str, Any] = {}
    async with serve_recordings(of(wire)) as server:
        for recording in of(wire):
            found = different(await ask(server, recording, "litellm"), recording)
            if unexcused := found.keys() - lost(recording).keys():
                wrong[recording.name] = {name: found[name] for name in unexcused}
    assert wrong == {}


async def test_what_litellm_is_said_to_lose_it_does_lose() -> None:
    seen: set[str] = set()
    async with serve_recordings(RECORDINGS) as server:
        for recording in RECORDINGS:
            if excused := lost(recording):
                found = different(await ask(server, recording, "litellm"), recording)
                seen |= {reason for name, reason in excused.items() if name in found}
    assert seen == REASONS
