"""An event is written beside its siblings, once; what is made of it elsewhere follows, or is missed here."""

from __future__ import annotations

from typing import get_args

import agentcore
import agentcore.events
from agentcore.events import KNOWN_KINDS, KnownEvent, UnknownEvent


def test_every_event_is_public_under_both_of_its_addresses() -> None:
    classes = get_args(KnownEvent)
    assert [cls for cls in classes if getattr(agentcore.events, cls.__name__, None) is not cls] == []
    assert [cls for cls in classes if getattr(agentcore, cls.__name__, None) is not cls] == []


def test_a_kind_is_said_by_one_event_and_by_no_unknown_one() -> None:
    kinds = [cls.model_fields["kind"].default for cls in get_args(KnownEvent)]
    assert sorted(kinds) == sorted(KNOWN_KINDS)
    assert UnknownEvent not in get_args(KnownEvent)
