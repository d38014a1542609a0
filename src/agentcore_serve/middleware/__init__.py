"""What every request passes before it reaches a route, as pure ASGI: one concept per file, their order in `stack`."""
