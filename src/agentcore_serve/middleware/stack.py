"""The order in which a request passes the middleware, outermost first."""

from __future__ import annotations

from collections.abc import Callable, Collection

from starlette.middleware import Middleware

from agentcore_serve.auth.security import Security
from agentcore_serve.middleware.audit import Audit
from agentcore_serve.middleware.authentication import Authentication
from agentcore_serve.middleware.bodies import Bodies, BodyKind, body_kind
from agentcore_serve.middleware.forwarded import Forwarded
from agentcore_serve.middleware.header_size import HeaderSize
from agentcore_serve.middleware.headers import SecurityHeaders
from agentcore_serve.middleware.hosts import OwnHosts
from agentcore_serve.middleware.problems import Problems
from agentcore_serve.middleware.rates import Rates
from agentcore_serve.middleware.request_log import Observe, RequestLog
from agentcore_serve.middleware.revocation import Revocation


def security_middleware(
    security: Security,
    *,
    public: Collection[str] = (),
    kind_of: Callable[[str, str], BodyKind] = body_kind,
    observe: Observe | None = None,
) -> list[Middleware]:
    """Return the middleware of a server.

    Around a router, or for `Starlette(middleware=..., exception_handlers={HTTPException: raise_again})`. Not around a
    Starlette: its own ServerErrorMiddleware would answer in plain text first.

    Args:
        security: Keys, page sessions, tickets and the audit log.
        public: Paths that need no key, as routes have them: "/livez", "/assets/{name}".
        kind_of: Which bodies a method and a path take.
        observe: Called after each request with its scope, status and seconds.
    """
    settings = security.settings
    limits = settings.request_limits
    behind_proxy = [Middleware(Forwarded)] if settings.behind_proxy else []
    return [
        *behind_proxy,
        Middleware(RequestLog, behind_proxy=settings.behind_proxy, observe=observe, clock=security.monotonic),
        Middleware(SecurityHeaders),
        Middleware(Audit, log=security.audit),
        Middleware(Problems),
        Middleware(HeaderSize, most=limits.header_bytes),
        # A Unix socket has no host of its own: its clients say localhost, or what they like.
        Middleware(
            OwnHosts,
            bound="localhost" if settings.unix else settings.host,
            allowed=settings.allowed_hosts,
            is_view=security.views.is_host,
        ),
        Middleware(Authentication, security=security, public=public),
        Middleware(Rates, security=security),
        Middleware(Revocation, security=security),
        Middleware(Bodies, limits=limits, kind_of=kind_of),
    ]
