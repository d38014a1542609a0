"""The command line: the program that puts the rest together. Nothing imports it."""

from agentcore.cli.app import main as main
