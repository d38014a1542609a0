"""The log of a conversation over HTTP: pages of events, the pieces that are kept beside it, and what it used."""

from __future__ import annotations

import re
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.responses import Response

from agentcore.usage import Usage
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import Call, Route

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
