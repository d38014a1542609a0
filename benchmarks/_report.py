"""What the scripts have in common: clocks, figures, bars, and the one JSON object that each prints.

A figure is only as good as what it is compared with: the two sides of a ratio are measured in one run, taking turns, so
that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

__all__ = ["Clock", "Report", "Settings", "Spent", "median", "report"]

Figure = float | int | Sequence[str]


@dataclass(frozen=True)
class Settings:
    """How much to measure."""

    tiny: bool
    """As little as shows that the script runs: the figures say nothing then."""
    folder: str | None
    """Where files are written; None is the system's folder for temporary ones."""

    def pick(self, full: int, tiny: int) -> int:
        """Give the count for this run."""
        return tiny if self.tiny else full


@dataclass
class Report:
    """What a script found out."""

    question: str
    figures: dict[str, Figure] = field(default_factory=dict[str, Figure])
    """By name; the name ends in the unit, or in `ratio`."""
    bars: list[dict[str, str | float | bool]] = field(default_factory=list[dict[str, str | float | bool]])

    def tell(self, name: str, figure: Figure) -> None:
        """Note a figure."""
        self.figures[name] = figure

    def hold(self, name: str, figure: float, at_most: float) -> None:
        """Note a figure and the bar that it is held to. What is compared is the rounded figure, which people see."""
        self.figures[name] = shown = rounded(figure)
        self.bars.append({"figure": name, "is": shown, "at_most": at_most, "met": shown <= at_most})


@dataclass(frozen=True)
class Spent:
    """Seconds."""

    cpu: float
    """Of all threads of this process."""
    wall: float

    def until(self, later: Spent, *, parts: int = 1) -> Spent:
        """Give what was spent from this reading to a later one, divided by the parts it was spent on."""
        return Spent((later.cpu - self.cpu) / parts, (later.wall - self.wall) / parts)

    def plus_cpu(self, cpu: float) -> Spent:
        """Add the CPU of other processes."""
        return Spent(self.cpu + cpu, self.wall)


class Clock:
    """Reads what was spent since it was made."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def read(self) -> Spent:
        """Give what was spent until now."""
        return Spent(time.process_time() - self._cpu, time.perf_counter() - self._wall)


def median(values: Sequence[float]) -> float:
    """Give the middle one."""
    return statistics.median(values)


def rounded(figure: float) -> float:
    """Keep three digits that mean something."""
    return float(f"{figure:.3g}")


def report(measure: Callable[[Settings], Report]) -> None:
    """Measure as the command line says, and print the JSON object."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--tiny", action="store_true", help="measure next to nothing: for checking the script")
    parser.add_argument("--folder", help="where files are written (default: the system's temporary folder)")
    given = parser.parse_args()
    found = measure(Settings(tiny=given.tiny, folder=given.folder))
    figures = {name: rounded(value) if isinstance(value, float) else value for name, value in found.figures.items()}
    said = {
        "benchmark": os.path.splitext(os.path.basename(sys.argv[0]))[0],
        "question": found.question,
        "tiny": given.tiny,
        "figures": figures,
        "bars": found.bars,
        "machine": {
            "cores": os.cpu_count(),
            "load": rounded(os.getloadavg()[0]),
            "system": platform.system(),
            "python": platform.python_version(),
            "pydantic": version("pydantic"),
            "anyio": version("anyio"),
        },
    }
    print(json.dumps(said, ensure_ascii=False))
