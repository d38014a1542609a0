"""What the demo works on: a small project with a fault in it, and the model's part, written beforehand."""

from __future__ import annotations

import shlex
import sys
from typing import Final

from agentcore.testing import ScriptedLLM, call, calls

__all__ = ["FILES", "TASK", "play", "test_command"]

TASK: Final = "The tests of this project fail. Find out why and mend it."

FILES: Final = {
    "basket.py": '''\
"""What a basket of goods costs."""

from dataclasses import dataclass


@dataclass
class Item:
    name: str
    cents: int
    count: int = 1


def total(items):
    """Add the basket up, in cents."""
    return sum(item.cents for item in items)


def receipt(items):
    """Write one line per item, and the total below."""
    lines = [f"{item.count} x {item.name:<10} {item.cents / 100:>8.2f}" for item in items]
    lines.append(f"{'total':<14} {total(items) / 100:>8.2f}")
    return "\\n".join(lines)
''',
    "test_basket.py": """\
import unittest

from basket import Item, receipt, total


class BasketTest(unittest.TestCase):
    def test_an_empty_basket_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_each_piece_is_paid_for(self):
        self.assertEqual(total([Item("apple", 40, count=3), Item("bread", 250)]), 370)

    def test_the_receipt_ends_with_the_total(self):
        self.assertTrue(receipt([Item("bread", 250)]).endswith("2.50"))


if __name__ == "__main__":
    unittest.main()
""",
    "README.md": "# basket\n\nAdds up what a basket of goods costs. Run its tests with `python -m unittest`.\n",
}


def test_command() -> list[str]:
    """Give the command that runs the project's tests with this Python."""
    return [sys.executable, "-m", "unittest"]


def play(root: str) -> ScriptedLLM:
    """Make the model: what it says is written here; what its calls do is real."""
    run_tests = call("terminal", command=shlex.join(test_command()))
    module = f"{root}/basket.py"
    return ScriptedLLM(
        [
            calls(
                call("terminal", command="ls -l && cat README.md"),
                call("file_editor", command="view", path=module),
                text="I begin with what is there.",
            ),
            calls(run_tests, text="Now the tests, to see which one fails and how."),
            calls(
                call(
                    "file_editor",
                    command="str_replace",
                    path=module,
                    old_str="    return sum(item.cents for item in items)",
                    new_str="    return sum(item.cents * item.count for item in items)",
                ),
                text="370 was expected and 290 came out: three apples were paid for as one. `total` leaves out how many there "
                "are of each.",
            ),
            calls(run_tests, text="The same tests again."),
            call(
                "finish",
                message="Mended: `total` in basket.py added each item once, however many of it there were. It multiplies by "
                "the count now. All three tests pass.",
            ),
        ],
        name="scripted",
    )
