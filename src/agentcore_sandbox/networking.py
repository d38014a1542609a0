"""The network of commands in a box, where some hosts are allowed: the proxy's port and variables inside, and what it has refused.

Above: `BoxWorkspace`, which listens inside, and `BoxProcess`, whose output has the refusals. Below: the proxy, which serves outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from agentcore_sandbox.network.policy import Allow
from agentcore_sandbox.network.proxy import PROXY_PORT, Proxy, proxy_environment
from agentcore_sandbox.network.refusals import NetworkRefusal, Refusals

MakeProxy = Callable[[Allow, Callable[[NetworkRefusal], None]], Proxy]
"""Makes the proxy of a box, as `Proxy` does."""

_MOST_SHOWN: Final = 10


@final
class BoxProxy:
    """The way out of one box.

    Args:
        allow: The hosts that may be reached.
        make: Makes the proxy.
    """

    def __init__(self, allow: Allow, make: MakeProxy) -> None:
        self.refusals: Final = Refusals()
        self.handle: Final = make(allow, self.refusals.add).handle
        """Serves a connection that was made inside."""
        self.port = PROXY_PORT
        """The port inside, which is another one where a command has taken that."""

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which a command finds it; those that it has of its own stay."""
        return {name: value for name, value in proxy_environment(self.port).items() if name not in own}


@final
class RefusalNotes:
    """The refusals since a process was started, as lines for what it writes.

    Most programs show the status of a refusal and not its text, so that the model would not know why. Which process of a box asked is
    not known: each that runs meanwhile has the lines.
    """

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._mark = refusals.count

    def take(self) -> bytes:
        """Return the lines about what was refused since this was asked last; nothing if nothing was."""
        refused = self._refusals.since(self._mark)
        self._mark = self._refusals.count
        return format_refusals(refused).encode() if refused else b""


def format_refusals(refused: Sequence[NetworkRefusal]) -> str:
    """Return the lines that say what was refused, and what to do about it."""
    lines = [f"[network] {each.message}" for each in refused[:_MOST_SHOWN]]
    if len(refused) > _MOST_SHOWN:
        lines.append(f"[network] {len(refused) - _MOST_SHOWN} more were refused.")
    lines.append("[network] This is the sandbox's policy. If a host is needed, ask the user to allow it.")
    return "".join(f"{line}\n" for line in lines)
