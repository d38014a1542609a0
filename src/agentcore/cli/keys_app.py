"""The commands of `agentcore keys`, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentcore.cli.options import AsJson, Debug, Later, execute

if TYPE_CHECKING:
    from agentcore.cli import keys
else:
    keys = Later("keys")

keys_app = typer.Typer(help="Add, list and revoke the keys of a server.", no_args_is_help=True)

Store = Annotated[
    str | None,
    typer.Option(help="Folder with the server's conversations (or AGENTCORE_SERVE_STORE).", metavar="FOLDER"),
]


@keys_app.command("add", short_help="Make a key.")
def keys_add_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for, as lists show it.")],
    *,
    owner: Annotated[
        str, typer.Option(help="Whose conversations the key reaches; those of others do not exist for it.")
    ] = "default",
    scopes: Annotated[
        str,
        typer.Option(
            help='What the key may do: "all", or some of read, run, approve, workspace, agents, admin, with commas.',
            metavar="SCOPES",
        ),
    ] = "all",
    expires: Annotated[
        str | None, typer.Option(help="When it ends: 12h, 30d, or a date, as in 2027-01-31.", metavar="WHEN")
    ] = None,
    store: Store = None,
    json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make a key and print it. It is shown this once: the server keeps only a hash of it.

    A server that runs takes it at once. The key stands on a line of its own on standard output, the rest on standard error:
    AGENTCORE_SERVER_KEY=$(agentcore keys add ci)
    """
    execute(lambda: keys.add_key(name, owner=owner, scopes=scopes, expires=expires, store=store, json=json), debug)


@keys_app.command("list", short_help="List the keys.")
def keys_list_command(*, store: Store = None, json: AsJson = False, debug: Debug = False) -> None:
    """List the keys, oldest first: ids, names, owners, scopes and when they were used last. The keys themselves are nowhere."""
    execute(lambda: keys.list_keys(store=store, json=json), debug)


@keys_app.command("revoke", short_help="Revoke a key.")
def keys_revoke_command(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as in ac_3f9c0a1b2c3d.")],
    *,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Revoke a key for ever. A server that runs refuses it at once, and ends its pages and open streams within seconds."""
    execute(lambda: keys.revoke_key(key_id, store=store), debug)


@keys_app.command("link", short_help="Print a link that logs a browser in.")
def keys_link_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the server is.")] = "http://127.0.0.1:8420",
    *,
    debug: Debug = False,
) -> None:
    """Print a link to the page of a server that runs. It works once, for a minute, and logs the browser in with the rights of the key.

    The key is that of AGENTCORE_SERVER_KEY; it is not in the link.
    """
    execute(lambda: keys.print_link(url), debug)
