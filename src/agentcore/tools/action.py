"""What a tool is asked to do."""

from __future__ import annotations

from pydantic import ConfigDict

from agentcore._value import Value

__all__ = ["Action"]


class Action(Value):
    """The arguments of one call. Each field, with the sentence under it, is what the model is told to fill in."""

    # Arguments are recorded and shown by the names that a model uses for them.
    model_config = ConfigDict(serialize_by_alias=True)


# The sentence under a field is the field's description in the schema. Set for subclasses alone: reading the source of this
# class, which has no fields, would be a tenth of what importing agentcore costs.
Action.model_config["use_attribute_docstrings"] = True
