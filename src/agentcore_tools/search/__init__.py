"""Shared parts of the tools that search: walking a tree, globs, and the rules of `.gitignore`."""
