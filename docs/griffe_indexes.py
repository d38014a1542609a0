"""Teach the reference what an index is: its `X as X` imports are its public names, as if `__all__` listed them.

A name that the root package has is shown there and nowhere else: that is its address.
"""

from __future__ import annotations

from typing import Any

import griffe


class Indexes(griffe.Extension):
    """Fill in the exports of each folder's index."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:  # noqa: ARG002 griffe passes more
        """Do so once a package is read."""
        at_the_root = {str(name) for name in pkg.exports or ()}
        for module in _modules(pkg):
            if module.is_init_module and module.exports is None:
                made_inside = f"{module.path}."
                names = [name for name, target in module.imports.items() if target.startswith(made_inside)]
                module.exports = [name for name in names if name not in at_the_root]


def _modules(module: griffe.Module) -> list[griffe.Module]:
    inside = [member for member in module.members.values() if isinstance(member, griffe.Module)]
    return [module, *(each for member in inside for each in _modules(member))]
