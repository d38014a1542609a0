"""The program inside of a box: files, processes and tunnels over one stream of bytes. `bootstrap.py` sends it there.

It runs in whatever Python is there (3.7 or later) with the standard library alone, so nothing here imports anything of agentcore
but its own modules. Readiness is a matter of milliseconds: each import counts, and so there are no threads and no asyncio.
"""
