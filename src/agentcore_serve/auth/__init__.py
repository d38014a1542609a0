"""Keys, scopes and identities."""

from agentcore_serve.auth.identity import SCOPES as SCOPES
from agentcore_serve.auth.identity import Identity as Identity
from agentcore_serve.auth.identity import Scope as Scope
