"""`agentcore mcp login` and `logout`, with a browser of the test's and a real authorization server."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from mcp_authorization import Authorization, serve_authorization

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Screen

USER = ".config/agentcore/mcp.json"
TOKENS = ".config/agentcore/mcp-tokens.json"
BROWSER = "import sys, httpx; httpx.get(sys.argv[1], follow_redirects=True)"


@pytest.fixture
def web() -> Iterator[Authorization]:
    with serve_authorization() as authorization:
        yield authorization


@pytest.fixture
def browser(tmp_path: Path) -> dict[str, str]:
    """The variable that names a browser, for a process of its own."""
    program = tmp_path / "browser"
    program.write_text(f"#!{sys.executable}\n{BROWSER}\n")
    program.chmod(0o700)
    return {"BROWSER": f"{program} %s &"}


def visit(screen: Screen, web: Authorization) -> httpx.Response:
    """Open the address that is shown."""
    screen.shows("open this address")
    screen.shows("code_challenge_method=S256")
    screen.shows("resource=")
    screen.shows("\n")
    (address,) = re.findall(rf"{web.url}/login\S+", screen.text.replace("\n", ""))
    return httpx.get(address, follow_redirects=True)


def test_a_server_that_wants_a_login_gets_one_and_is_used(
    cli: Cli, web: Authorization, browser: dict[str, str]
) -> None:
    added = cli.run("mcp", "add", "web", web.mcp, "--oauth")
    assert (added.code, added.out.splitlines()[-1]) == (0, "log in: agentcore mcp login web")
    user = cli.project.parent / USER
    assert json.loads(user.read_text())["mcpServers"]["web"]["auth"] == "oauth"
    assert cli.run("mcp", "list").out == f"web  {web.mcp}  {user}  needs login\n"
    checked = cli.run("mcp", "check")
    assert (checked.code, "needs login: run `agentcore mcp login web`" in checked.out) == (1, True)

    ended = cli.spawn("mcp", "login", "web", env=browser)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == ("Log in at 127.0.0.1, in the browser. If it does not show the page, open this address:")
    assert lines[1].startswith(f"{web.url}/login?")
    assert lines[2] == "logged in to web"
    assert lines[3].endswith(" mcp check web")
    assert (cli.project.parent / TOKENS).stat().st_mode & 0o777 == 0o600
    assert "access-" not in ended.out

    assert cli.run("mcp", "list", "--json").lines[0]["state"] == "ready"
    assert cli.run("mcp", "check").out.startswith("web  2 tools  whisper")
    played = cli.play("Done.")
    assert (played.code, "needs login" in played.out) == (0, False)
    assert "access-" not in cli.log().read_text()

    ended = cli.run("mcp", "logout", "web")
    assert (ended.code, ended.out) == (0, "logged out of web\n")
    ended = cli.run("mcp", "logout", "web")
    assert (ended.code, ended.out) == (1, "There is no login to web.\n")
    assert "needs login" in cli.run("mcp", "list").out
    played = cli.play("Done.")
    assert (played.code, "agentcore mcp login web" in " ".join(played.out.split())) == (0, True)


def test_the_address_alone_is_printed_where_no_browser_is_to_be_opened(cli: Cli, web: Authorization) -> None:
    with cli.start("mcp", "login", web.mcp, "--no-browser", columns=80) as started:
        assert visit(started, web).text.endswith("<p>Done. Close this page, and go back to the terminal.</p>")
        assert started.ends() == 0
    assert "logged in to http" in started.text
    assert cli.run("mcp", "logout", web.mcp).code == 0


def test_a_refusal_is_named_in_the_browser_and_in_the_terminal(cli: Cli, web: Authorization) -> None:
    web.refuses = "access_denied"
    with cli.start("mcp", "login", web.mcp, "--no-browser") as started:
        page = visit(started, web)
        assert (page.status_code, "There was no login: it was refused (access_denied" in page.text) == (400, True)
        assert started.ends() == 1
    shown = " ".join(started.text.split())
    assert "error: No login to the MCP server 'server': it was refused (access_denied: The person said no.)." in shown
    assert "Traceback" not in shown


def test_ctrl_c_ends_the_wait(cli: Cli, web: Authorization) -> None:
    with cli.start("mcp", "login", web.mcp, "--no-browser") as started:
        started.shows("open this address")
        started.process.send_signal(signal.SIGINT)
        assert started.ends() == 130
    assert "Stopped." in started.text
    assert "Traceback" not in started.text
    assert not (cli.project.parent / TOKENS).exists()


def test_what_cannot_be_logged_in_to_is_an_error(cli: Cli, web: Authorization) -> None:
    (cli.project.parent / USER).parent.mkdir(parents=True)
    (cli.project.parent / USER).write_text(
        json.dumps(
            {"mcpServers": {"own": {"command": "x"}, "far": {"url": "http://far.example/mcp", "auth": "oauth2"}}}
        )
    )
    (cli.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": {"url": web.mcp}}}))
    for name, code, problem in (
        ("own", 2, "is a program"),
        ("none", 2, "No MCP server is called 'none'"),
        ("theirs", 2, "nobody has allowed it yet"),
        ("far", 1, "its tokens would go unencrypted"),
    ):
        ended = cli.run("mcp", "login", name, "--no-browser")
        assert (ended.code, problem in " ".join(ended.err.split())) == (code, True), ended.err
    refused = cli.run("mcp", "add", "own2", "--oauth", "--", "x")
    assert (refused.code, "--oauth is for an address" in refused.err) == (2, True)
    assert web.asked == []


def test_a_damaged_file_is_set_aside_and_named(cli: Cli, web: Authorization, browser: dict[str, str]) -> None:
    assert cli.run("mcp", "add", "web", web.mcp, "--oauth").code == 0
    tokens = cli.project.parent / TOKENS
    tokens.write_text("{")
    assert f"needs login: The file with the logins to MCP servers can't be read: {tokens}" in cli.run("mcp", "list").out
    ended = cli.spawn("mcp", "login", "web", env=browser)
    assert ended.code == 0
    assert f"The file with the other logins could not be understood. It is {tokens}.broken now." in ended.out
    assert Path(f"{tokens}.broken").read_text() == "{"
