"""`agentcore demo`: an agent fixes a small project, offline. The model is scripted; everything else is real."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Final

import anyio
from anyio.to_thread import run_sync
from rich.text import Text

from agentcore.agent import Agent
from agentcore.cli.console import BAD, DIM, GOOD, STRONG, make_console, print_line, print_text, styled
from agentcore.cli.conversations import open_store
from agentcore.cli.runner import RunRequest, run_request
from agentcore.cli.settings import Settings
from agentcore.ids import new_conversation_id
from agentcore.testing import ScriptedLLM, call, calls
from agentcore.workspace import LocalWorkspace
from agentcore_tools import coding_tools


async def show_demo(settings: Settings, *, verbose: bool) -> int:
    """Run the demo and return the exit code: 0 if the project's tests fail before and pass afterwards."""
    store = open_store(settings)
    console = make_console()
    root = await run_sync(_make_project, settings.home)
    conversation_id = new_conversation_id()

    print_line(console, "agentcore demo", STRONG)
    print_text(
        console, "The model is scripted: its replies were written beforehand, so no key and no network are needed."
    )
    print_text(console, "Everything else is real: the project, the shell, the editor, the tests and the log.")
    for label, path in (("project: ", root), ("log:     ", os.path.join(store.location, conversation_id))):
        # A path that does not fit gets its own line, so that it can be copied whole.
        fits = not console.is_terminal or len(label) + len(path) <= console.width
        print_line(
            console, styled(label, DIM).append(path) if fits else styled(label.rstrip(), DIM).append(f"\n{path}")
        )
    print_line(console, "")

    failed_before = not await _tests_pass(root)
    agent = Agent(llm=play(root), tools=coding_tools())
    code = await run_request(
        RunRequest(
            agent=agent,
            workspace=root,
            store=store,
            settings=settings,
            id=conversation_id,
            message=TASK,
            verbose=verbose,
        )
    )
    if code:
        return code
    if not (failed_before and await _tests_pass(root)):
        print_text(console, f"The demo failed: the tests in {root} should fail before it and pass after it.", BAD)
        return 1
    print_line(console, "")
    print_text(console, "The project's tests pass when run again outside the agent.", GOOD)
    print_text(console, Text("With a real model of any provider, in your own folder:", DIM))
    print_line(console, "  export ANTHROPIC_API_KEY=...")
    print_line(console, f"  {settings.program} run 'your task' --model anthropic/claude-sonnet-4-5")
    return 0


def _make_project(home: str) -> str:
    # One folder that stays, so that it can be inspected, and that the next demo uses again.
    root = os.path.join(home, "demo")
    os.makedirs(root, exist_ok=True)
    for name, text in FILES.items():
        with open(f"{root}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    return os.path.realpath(root)


async def _tests_pass(root: str) -> bool:
    async with LocalWorkspace(root) as workspace:
        with anyio.fail_after(60):
            return (await workspace.run(test_command())).exit_code == 0


TASK: Final = "The tests of this project fail. Find out why and fix it."

FILES: Final[dict[str, str]] = {
    "basket.py": '''\
"""The cost of a basket of goods."""

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
    """Return the command that runs the project's tests with this Python."""
    return [sys.executable, "-m", "unittest"]


def play(root: str) -> ScriptedLLM:
    """Return the scripted model. Its calls do real work."""
    run_tests = call("terminal", command=shlex.join(test_command()))
    module = f"{root}/basket.py"
    return ScriptedLLM(
        [
            calls(
                call("terminal", command="ls -l && cat README.md"),
                call("file_editor", command="view", path=module),
                text="First a look at what is there.",
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
                text="370 was expected, but the result is 290: three apples were counted as one. `total` ignores the count of "
                "each item.",
            ),
            calls(run_tests, text="The same tests again."),
            call(
                "finish",
                message="Fixed: `total` in basket.py added each item once and ignored its count. It multiplies by the count now. "
                "All three tests pass.",
            ),
        ],
        name="scripted",
    )
