"""JSON Schema that every provider takes, from a model, from a function, or from a foreign schema."""

from agentcore.schema.plain import json_schema_of as json_schema_of
from agentcore.schema.plain import json_schema_of_type as json_schema_of_type
from agentcore.schema.plain import plain_schema as plain_schema
from agentcore.schema.plain import schema_of as schema_of
from agentcore.schema.signature import Described as Described
from agentcore.schema.signature import Signature as Signature
from agentcore.schema.signature import read_docstring as read_docstring
from agentcore.schema.signature import read_signature as read_signature
from agentcore.schema.validation import SchemaCheck as SchemaCheck
from agentcore.schema.validation import check_schema as check_schema
from agentcore.schema.validation import schema_errors as schema_errors
