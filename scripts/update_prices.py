"""Update the table of models from the list that litellm ships: `nox -s prices`.

litellm itself is not imported. The table keeps the models that can be asked for text and the fields that the look-up and
the prices use, one line per model, sorted, so that an update is easy to review.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from agentcore.llm.catalog.models import ABILITIES, FILE

Listed = Mapping[str, Any]

TABLE = Path(__file__).parents[1] / "src/agentcore/llm/catalog" / FILE
_LIST = "model_prices_and_context_window_backup.json"

_NO_MODELS = re.compile(r"\*|-commitment/|^together-ai-|^fireworks-ai-|/container$")
"""Names of the list that stand for sizes of models or for contracts, which cannot be called."""

_FLAGS = dict(
    zip(
        ABILITIES,
        (
            "supports_vision",
            "supports_pdf_input",
            "supports_function_calling",
            "supports_reasoning",
            "supports_prompt_caching",
            "supports_response_schema",
        ),
        strict=True,
    )
)
_RATES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "reasoning": "output_cost_per_reasoning_token",
}
_PRICES = tuple(_RATES.values())
_ABOVE = re.compile(r"_above_(\d+)(k?)_tokens$")
_NOT_BY_TOKEN = re.compile(r"_cost_per_(second|character|image)$|_dbu_cost")


def litellm_list() -> tuple[str, dict[str, Listed]]:
    """Return the version and the list of the litellm that is installed.

    Raises:
        ModuleNotFoundError: litellm is not installed.
    """
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("litellm is not installed, and the table of models is made from its list.")
    text = Path(spec.submodule_search_locations[0], _LIST).read_text(encoding="utf-8")
    return f"litellm {version('litellm')}", json.loads(text)


def rows(listed: Mapping[str, Listed]) -> dict[str, dict[str, Any]]:
    """Build the rows of the table."""
    kept = {
        name: entry
        for name, entry in sorted(listed.items())
        if entry.get("mode") in {"chat", "responses"} and not _NO_MODELS.search(name)
    }
    return {name: _row(entry) for name, entry in kept.items()}


def _row(entry: Listed) -> dict[str, Any]:
    row: dict[str, Any] = {"by": entry["litellm_provider"]}
    if entry["mode"] != "chat":
        row["mode"] = entry["mode"]
    for name, key in (("reads", "max_input_tokens"), ("writes", "max_output_tokens")):
        if tokens := entry.get(key):
            row[name] = int(tokens)
    abilities = _abilities(entry)
    for name, wanted in (("can", True), ("cannot", False)):
        if words := [ability for ability in ABILITIES if abilities[ability] is wanted]:
            row[name] = " ".join(words)
    return row | _dollars(entry)


def _abilities(entry: Listed) -> dict[str, bool | None]:
    found = {ability: cast("bool | None", entry.get(flag)) for ability, flag in _FLAGS.items()}
    if found["vision"] is None and (modalities := entry.get("supported_modalities")):
        found["vision"] = "image" in modalities
    if found["prompt_caching"] is None and entry.get("cache_read_input_token_cost"):
        found["prompt_caching"] = True  # it has a price, so there is such a thing
    return found


def _dollars(entry: Listed) -> dict[str, Any]:
    tiers: list[Listed] = sorted(entry.get("tiered_pricing") or (), key=lambda tier: tier["range"][0])
    base = _rates({**entry, **tiers[0]} if tiers else entry, entry["litellm_provider"])
    if "input" not in base or "output" not in base or _costs_otherwise(entry, base):
        return {}
    row: dict[str, Any] = {"dollars": base}
    above = _above(entry, base) | {int(tier["range"][0]): _whole(tier, base) for tier in tiers[1:]}
    if changed := {str(limit): rates for limit, rates in sorted(above.items()) if rates}:
        row["above"] = changed
    return row


def _rates(entry: Listed, provider: str = "", suffix: str = "", fresh: Any = None) -> dict[str, Any]:
    """Return US dollars per million tokens."""
    rates = {
        name: _per_million(entry[key + suffix]) for name, key in _RATES.items() if entry.get(key + suffix) is not None
    }
    if provider == "fireworks_ai" and "input" in rates and "cache_read" not in rates and not suffix:
        rates["cache_read"] = _number(Decimal(str(rates["input"])) / 2)  # its rule for what it lists no price for
    if rates.get("cache_write", 0) < rates.get("input", fresh or 0):
        # Tokens to be kept are read first. A price below that is a price of storing, or a slip.
        rates.pop("cache_write", None)
    return rates


def _whole(tier: Listed, base: Listed) -> dict[str, Any]:
    """Return the rates of a tier, which takes over none from another."""
    rates = _rates(tier)
    rates.setdefault("output", base["output"])
    left = {"cache_read": rates["input"], "cache_write": rates["input"], "reasoning": rates["output"]}
    return {name: left[name] for name in left if name in base} | rates


def _above(entry: Listed, base: Listed) -> dict[int, dict[str, Any]]:
    """Return the rates that change above each threshold; they stay changed above the next ones."""
    suffixes = {match[0]: match for key in entry if (match := _ABOVE.search(key)) and key.startswith(_PRICES)}
    found: dict[int, dict[str, Any]] = {}
    changed: dict[str, Any] = {}
    for suffix, match in sorted(suffixes.items(), key=lambda each: _limit(each[1], entry)):
        changed |= _rates(entry, suffix=suffix, fresh=changed.get("input", base["input"]))
        found[_limit(match, entry)] = dict(changed)
    return found


def _limit(match: re.Match[str], entry: Listed) -> int:
    tokens = int(match[1]) * (1000 if match[2] else 1)
    # There "above" is "from".
    return tokens - 1 if entry["litellm_provider"] == "xai" else tokens


def _costs_otherwise(entry: Listed, base: Listed) -> bool:
    """Return whether more than tokens is paid for, so that their price alone would be wrong."""
    others = [key for key, price in entry.items() if _NOT_BY_TOKEN.search(key) and isinstance(price, float) and price]
    return bool(entry.get("input_cost_per_request")) or bool(others and not base["input"] and not base["output"])


def _per_million(price: float) -> int | float:
    # The list has prices that were worked out in floats: 2.4997000000000006e-07.
    return _number(Decimal(f"{price:.9g}").scaleb(6))


def _number(amount: Decimal) -> int | float:
    return int(amount) if amount == int(amount) else float(amount)


def written(source: str, date: str, table: Mapping[str, Mapping[str, Any]]) -> str:
    """Format a table, one line per model."""
    lines = [f" {json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in table.items()]
    head = f'{{"source": {json.dumps(source)}, "date": {json.dumps(date)}, "models": {{'
    return "\n".join([head, ",\n".join(lines), "}}", ""])


def main() -> None:
    """Update the table, if anything changed."""
    source, listed = litellm_list()
    table = rows(listed)
    old: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    if (old.get("source"), old.get("models")) != (source, table):
        today = datetime.now(UTC).date().isoformat()
        TABLE.write_text(written(source, today, table), encoding="utf-8")


if __name__ == "__main__":
    main()
