"""The command line: the program that puts the rest together. Nothing imports it."""

from agentcore.cli.start import main as main
