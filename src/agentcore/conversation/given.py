"""Whether what a conversation is opened with can be used at all: said at once, and not by the first call that needs it."""

from __future__ import annotations

from pathlib import PurePath

from agentcore.security import is_checks

__all__ = ["check_given"]


def check_given(store: object, confirm: object) -> None:
    """Refuse a store that is none, and what can decide about nothing.

    Raises:
        TypeError: It is one.
    """
    if isinstance(store, str | PurePath):
        raise TypeError(f"store is a store, not its folder: FileStore({str(store)!r}).")
    if store is not None and (isinstance(store, type) or not hasattr(store, "create")):
        raise TypeError(f"store is a store, as FileStore('conversations') or MemoryStore(), not {store!r}.")
    if confirm is None:
        return
    if isinstance(confirm, type) or not (is_checks(confirm) or callable(confirm)):
        raise TypeError(
            "confirm is a policy, as AlwaysConfirm() or ConfirmRisky(), a check or a list of those, or an async function "
            f"that is asked about each call, not {confirm!r}."
        )
