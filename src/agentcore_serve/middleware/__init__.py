"""The way of a request to its route, as pure ASGI middleware: one concept per file, their order in `stack`."""
