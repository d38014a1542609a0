"""Several condensers in a row, the cheap ones first."""

from __future__ import annotations

from agentcore._arguments import check_arguments, object_with
from agentcore.condense.condenser import Condenser, CondenserSpec, ask_condenser, record_condenser
from agentcore.condense.outline import Outline
from agentcore.condense.window import HARD
from agentcore.events import Condensation


class Pipeline:
    """Asks condensers in order, and takes the first answer.

    Where the history is too large, it takes the first answer that makes it small enough, or else the one that frees most.
    A condenser that fails is not passed over: what follows is that of a single one.
    """

    def __init__(self, *condensers: Condenser) -> None:
        """Take the condensers.

        Raises:
            TypeError: One of them is not a condenser.
            ValueError: There is none.
        """
        row = object_with("condense", description="a condenser, as Summary()")
        for condenser in condensers:
            check_arguments({"condenser": row}, condenser=condenser)
        if not condensers:
            raise ValueError("A pipeline needs at least one condenser, as in Pipeline(Masking(), Summary()).")
        self.condensers = condensers

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.condensers))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and other.condensers == self.condensers

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    async def condense(self, outline: Outline) -> Condensation | None:
        """Ask one after the other."""
        best: Condensation | None = None
        for condenser in self.condensers:
            answer = await ask_condenser(condenser, outline)
            if answer is None:
                continue
            if best is None or outline.freed_by(answer) > outline.freed_by(best):
                best = answer
            if outline.reason != "hard" or outline.used - outline.freed_by(best) < HARD * outline.room:
                return best
        return best

    def record(self) -> CondenserSpec | None:
        """Return the records of its condensers; None where one of them has none."""
        specs: list[CondenserSpec] = []
        for condenser in self.condensers:
            if (spec := record_condenser(condenser)) is None:
                return None
            specs.append(spec)
        return CondenserSpec(name="pipeline", params={"condensers": [spec.model_dump(mode="json") for spec in specs]})
