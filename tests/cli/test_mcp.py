"""MCP servers in the command line: where they come from, whom they belong to, and what is asked first."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentcore.agent import Agent, record_agent, restore_agent
from agentcore.cli.mcp_files import Servers, recorded_names, renew_recorded
from agentcore.mcp import MCPServer, MCPToolset, register_mcp_server
from agentcore.testing import ScriptedLLM, call
from agentcore.tools import prefixed, renamed
from agentcore.workspace import register_workspace
from agentcore_sandbox.bubblewrap.workspace import restore
from boxes_bubblewrap import needs_bubblewrap

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TINY = str(Path(__file__).parents[1] / "mcp" / "servers" / "tiny.py")
USER = ".config/agentcore/mcp.json"


def tiny(*tools: str, **entry: Any) -> dict[str, Any]:
    """Return the entry of a server that notes its starts in the folder that HOME is."""
    return {"command": sys.executable, "args": [TINY, *tools], "env": {"TINY_NOTE": "${HOME}/started"}, **entry}


def write(path: Path, **servers: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def started(cli: Cli) -> int:
    """Count the servers that were started."""
    note = cli.project.parent / "started"
    return len(note.read_text().splitlines()) if note.exists() else 0


def tools_of(provider: Any, index: int = -1) -> list[str]:
    """Return the names of the MCP tools of a request."""
    tools = json.loads(provider.requests[index].content)["tools"]
    return [name for tool in tools if (name := tool["function"]["name"]).startswith("mcp__")]


def test_the_users_servers_are_used_in_every_folder_and_when_it_is_resumed(cli: Cli) -> None:
    added = cli.run("mcp", "add", "own", "--env", "TINY_NOTE=${HOME}/started", "--", sys.executable, TINY)
    assert added.code == 0
    assert (cli.project.parent / USER).stat().st_mode & 0o777 == 0o600
    with cli.serve(call("mcp__own__echo", text="hello"), "Done.", "Again.") as provider:
        address = ("--base-url", provider.base_url)
        ended = cli.run("run", "Do it.", "-m", "mine", *address)
        assert ended.code == 0, ended.err
        assert "echo: hello" in ended.out
        assert cli.run("resume", "Go on, please.", *address).code == 0
        assert tools_of(provider, 0) == tools_of(provider) == ["mcp__own__echo"]
    assert (cli.project.parent / "started").read_text().splitlines() == [str(cli.project)] * 2
    (recorded,) = [event["agent"]["toolsets"] for event in cli.events() if event["kind"] == "agent_configured"]
    assert [spec["params"].keys() for spec in recorded] == [{"name", "digest"}]
    assert TINY not in cli.log().read_text()


def test_a_projects_servers_are_asked_about_once_and_again_when_the_file_has_changed(cli: Cli) -> None:
    file = write(cli.project / ".mcp.json", theirs=tiny("first"))
    with cli.serve("One.", "Two.", "Three.", "Four.") as provider:
        run = ("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        code, screen = cli.on_terminal(*run, answers=[("Use them? [y/N] ", "n\n")])
        assert (code, started(cli), tools_of(provider)) == (0, 0, [])
        assert f"theirs  {sys.executable} {TINY} first" in screen.text.replace("\n", "")
        assert "TINY_NOTE=${HOME}/started" in screen.text
        code, screen = cli.on_terminal(*run, answers=[("Use them? [y/N] ", "y\n")])
        assert (code, tools_of(provider)) == (0, ["mcp__theirs__first"])
        code, screen = cli.on_terminal(*run)
        assert "Use them?" not in screen.text
        assert (code, tools_of(provider)) == (0, ["mcp__theirs__first"])
        write(file, theirs=tiny("second"))
        code, screen = cli.on_terminal(*run, answers=[("Use them? [y/N] ", "\n")])
        assert (code, tools_of(provider)) == (0, [])
    assert started(cli) == 2
    assert (cli.project.parent / ".config/agentcore/trusted-mcp-files.json").stat().st_mode & 0o777 == 0o600


def test_without_a_terminal_a_projects_servers_are_left_out_until_they_are_allowed(cli: Cli) -> None:
    write(cli.project / ".vscode/mcp.json", theirs=tiny())
    with cli.serve("One.", "Two.", "Three.") as provider:
        run = ("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        ended = cli.run(*run)
        path = f"{cli.project}/.vscode/mcp.json"
        assert (ended.code, tools_of(provider), started(cli)) == (0, [], 0)
        assert f"Allow it: agentcore mcp trust {path}, or for this once: --mcp {path}" in ended.out
        as_json = cli.run(*run, "--json")
        assert "Allow it" in as_json.err
        assert all(line["kind"] for line in as_json.lines)
        refused = cli.run("mcp", "trust")
        assert refused.code == 2
        assert "there is no terminal to ask on. Pass --yes." in refused.err
        assert cli.run("mcp", "trust", "--yes").code == 0
        assert "left out" not in cli.run(*run).out
        assert tools_of(provider) == ["mcp__theirs__echo"]


def test_a_file_that_is_named_is_not_asked_about(cli: Cli) -> None:
    write(cli.project / ".mcp.json", theirs=tiny())
    with cli.serve("One.", "Two.") as provider:
        run = ("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        ended = cli.run(*run, "--mcp", ".mcp.json")
        assert "left out" not in ended.out
        assert tools_of(provider) == ["mcp__theirs__echo"]
        cli.run(*run)
        assert tools_of(provider) == []


def test_a_project_does_not_take_the_place_of_the_users_server(cli: Cli) -> None:
    write(cli.project.parent / USER, same=tiny("mine"))
    write(cli.project / ".mcp.json", same=tiny("theirs"), other=tiny("besides"))
    assert cli.run("mcp", "trust", "--yes").code == 0
    with cli.serve("One.") as provider:
        ended = cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        assert tools_of(provider) == ["mcp__same__mine", "mcp__other__besides"]
    assert "has a server of this name too, and that one is used. Rename this one." in ended.out


def test_no_mcp_leaves_out_all_but_those_that_are_named(cli: Cli) -> None:
    write(cli.project.parent / USER, own=tiny())
    named = write(cli.project.parent / "named.json", named=tiny())
    with cli.serve("One.", "Two.", "Three.", "Four.", "Five.") as provider:
        address = ("--base-url", provider.base_url)
        run = ("run", "Do it.", "-m", "mine", *address)
        cli.run(*run, "--no-mcp")
        assert tools_of(provider) == []
        cli.run(*run, "--no-mcp", "--mcp", str(named))
        assert tools_of(provider) == ["mcp__named__echo"]
        # Nobody knows what a server's tools do.
        cli.run(*run, "--tools", "readonly")
        assert tools_of(provider) == []
        cli.run(*run, "--id", "with")
        assert tools_of(provider) == ["mcp__own__echo"]
        cli.run("resume", "with", "Go on.", *address, "--no-mcp")
        assert tools_of(provider) == []


def test_resume_has_the_servers_of_the_conversation_as_they_are_now_and_those_that_are_named(cli: Cli) -> None:
    own = write(cli.project.parent / USER, own=tiny("before"))
    named = write(cli.project.parent / "named.json", named=tiny())
    with cli.serve(*["Done."] * 6) as provider:
        address = ("--base-url", provider.base_url)
        cli.run("run", "Do it.", "-m", "mine", *address, "--mcp", str(named), "--id", "one")
        assert tools_of(provider) == ["mcp__named__echo", "mcp__own__before"]
        write(own, own=tiny("after"), new=tiny("new"))
        ended = cli.run("resume", "one", "Go on.", *address)
        assert tools_of(provider) == ["mcp__own__after"]
        assert ended.code == 0
        assert "no file that may be used lists this MCP server now." in " ".join(ended.out.split())
        cli.run("resume", "one", "Go on.", *address, "--mcp", str(named))
        assert tools_of(provider) == ["mcp__named__echo", "mcp__own__after"]
        cli.run("run", "Do it.", "-m", "mine", *address, "--no-mcp", "--id", "two")
        cli.run("resume", "two", "Go on.", *address)
        assert tools_of(provider) == []
        cli.run("resume", "two", "Go on.", *address, "--mcp", str(named))
        assert tools_of(provider) == ["mcp__named__echo"]


def test_a_message_calls_a_prompt_of_a_server(cli: Cli) -> None:
    write(cli.project.parent / USER, own=tiny())
    with cli.serve("One.", "Two.") as provider:
        address = ("--base-url", provider.base_url)
        ended = cli.run("run", "/mcp__own__review", "-m", "mine", *address)
        assert (ended.code, "Look for typing errors." in provider.requests[-1].content.decode()) == (0, True)
        assert "\nread prompt mcp__own__review\n" in ended.out
        ended = cli.run("resume", "/mcp__own__reviw it", *address)
        assert "/mcp__own__reviw: no MCP server that is open has such a prompt." in " ".join(ended.out.split())


def test_resume_asks_again_about_a_project_file_that_has_changed(cli: Cli) -> None:
    write(cli.project / ".mcp.json", theirs=tiny("before"))
    assert cli.run("mcp", "trust", "--yes").code == 0
    with cli.serve(*["Done."] * 4) as provider:
        address = ("--base-url", provider.base_url)
        cli.run("run", "Do it.", "-m", "mine", *address, "--id", "one")
        cli.run("resume", "one", "Go on.", *address)
        assert tools_of(provider) == ["mcp__theirs__before"]
        write(cli.project / ".mcp.json", theirs=tiny("after"))
        ended = cli.run("resume", "one", "Go on.", *address)
        assert (ended.code, tools_of(provider)) == (0, [])
        assert "is left out: nobody has allowed it yet" in ended.out
        code, _ = cli.on_terminal("resume", "one", "Go on.", *address, answers=[("Use them? [y/N] ", "y\n")])
        assert (code, tools_of(provider)) == (0, ["mcp__theirs__after"])


def test_the_servers_of_a_record_are_renewed_inside_of_wrappers_too() -> None:
    before, now = MCPServer(name="known", command="before"), MCPServer(name="known", command="now")
    gone = MCPServer(name="gone", command="x")
    recorded, _ = record_agent(
        Agent(
            llm=ScriptedLLM([]),
            tools=[prefixed(MCPToolset(before), "a_"), renamed(prefixed(MCPToolset(gone), "b_"), {"b_x": "y"})],
        )
    )
    servers = Servers({"known": now})
    assert recorded_names(recorded) == {"known", "gone"}
    register_mcp_server(now)
    register_mcp_server(gone)  # as it would be known where several conversations are
    renewed = renew_recorded(recorded, servers, leave_out=False)
    known, missing = restore_agent(renewed, llm=ScriptedLLM([])).toolsets
    assert known == prefixed(MCPToolset(now), "a_")
    assert missing.name == "gone"
    # It keeps its place in the record, and comes back where a file lists it again.
    record, _ = record_agent(Agent(llm=ScriptedLLM([]), tools=[missing]))
    toolsets: Any = recorded["toolsets"]
    assert record["toolsets"] == toolsets[1:]
    assert "toolsets" not in renew_recorded(recorded, servers, leave_out=True)


def test_rewind_and_condense_work_whatever_became_of_the_servers_and_start_none(cli: Cli) -> None:
    own = write(cli.project.parent / USER, own=tiny())
    with cli.serve("Done.") as provider:
        cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--id", "one", "--condenser", "window")
        own.unlink()
        ended = cli.run("condense", "one", "--base-url", provider.base_url)
        assert ended.code == 0, ended.err
    ended = cli.run("rewind", "one", "--to", "4")
    assert ended.code == 0, ended.err
    configured = [event["agent"]["toolsets"] for event in cli.events("one") if event["kind"] == "agent_configured"]
    assert len(configured) == 1
    assert started(cli) == 1


def test_a_bad_server_does_not_keep_the_others_from_being_used(cli: Cli) -> None:
    write(cli.project.parent / USER, good=tiny(), gone={"command": "no-such-program"}, bad={"type": "pigeon"})
    with cli.serve("Done.") as provider:
        ended = cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        assert tools_of(provider) == ["mcp__good__echo"]
    assert ended.code == 0
    assert "mcpServers.bad.type: There is no transport 'pigeon'." in ended.out
    assert "The toolset 'gone' is missing: The MCP server 'gone' can't be opened" in ended.out


def test_a_damaged_own_file_is_named_and_a_named_one_is_an_error(cli: Cli) -> None:
    write(cli.project.parent / USER).write_text("{")
    with cli.serve("Done.") as provider:
        run = ("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        ended = cli.run(*run)
        assert ended.code == 0
        assert f"{USER}: line 1, column 2: this is not JSON" in ended.out
        for file, problem in ((".mcp.json", "No such file."), (f"{cli.project.parent}/{USER}", "line 1, column 2")):
            ended = cli.run(*run, "--mcp", file)
            assert (ended.code, problem in ended.err) == (2, True)
        assert len(provider.requests) == 1


def test_check_opens_each_and_says_what_it_has(cli: Cli) -> None:
    write(
        cli.project.parent / USER,
        good=tiny("a", "b"),
        gone={"command": "no-such-program"},
        whole={"command": "npx -y a-server"},
        needs={"command": "x", "env": {"A": "${NOT_SET}"}},
    )
    ended = cli.run("mcp", "check")
    assert ended.code == 1
    lines = sorted(ended.out.splitlines())
    assert lines[1] == "good  2 tools  a, b"
    assert lines[0].startswith("gone  failed: ")
    assert lines[0].endswith("Install 'no-such-program', or write its whole path.")
    assert "'NOT_SET'" in lines[2]
    assert lines[3].endswith('Write the program alone as "command", and the rest as "args".')
    ended = cli.run("mcp", "check", "good")
    assert (ended.code, ended.out) == (0, "good  2 tools  a, b\n")
    ended = cli.run("mcp", "check", "good", "--json")
    assert ended.lines == [{"name": "good", "tools": ["mcp__good__a", "mcp__good__b"], "notices": [], "problem": None}]
    ended = cli.run("mcp", "check", "bood")
    assert (ended.code, "No MCP server is called 'bood'" in ended.err) == (2, True)


def test_check_does_not_start_what_nobody_has_allowed(cli: Cli) -> None:
    write(cli.project / ".mcp.json", theirs=tiny())
    assert cli.run("mcp", "check").code == 1
    assert cli.run("mcp", "check", "theirs").code == 1
    assert started(cli) == 0
    assert cli.run("mcp", "check", "--mcp", ".mcp.json").code == 0
    code, _ = cli.on_terminal("mcp", "check", answers=[("Use them? [y/N] ", "y\n")])
    assert code == 0
    assert cli.run("mcp", "check").code == 0


def test_list_starts_nothing_and_says_how_things_stand(cli: Cli) -> None:
    empty = cli.run("mcp", "list")
    assert (empty.code, empty.out) == (0, "No MCP servers. Add one: agentcore mcp add NAME -- COMMAND\n")
    headers = {"Authorization": "Bearer ${NOT_SET}", "X-Plain": "hunter2"}
    write(
        cli.project.parent / USER,
        own=tiny("a b"),
        docs={"url": "https://example.org/mcp", "headers": headers},
        off={"command": "x", "disabled": True},
    )
    write(cli.project / ".mcp.json", theirs={"command": "evil\x1b[2J"}, bad=[])
    ended = cli.run("mcp", "list")
    user, project = cli.project.parent / USER, cli.project / ".mcp.json"
    assert ended.out.splitlines() == [
        f"own  {sys.executable} {TINY} 'a b'  {user}",
        f"docs  https://example.org/mcp  {user}  needs NOT_SET",
        f"off  x  {user}  disabled",
        f"theirs  evil\\x1b[2J  {project}  not allowed yet",
        f'{project}: mcpServers.bad: A server is an object, as in {{"command": "npx", "args": ["-y", "a-server"]}}.',
        (
            f"{project} is left out: nobody has allowed it yet to start its MCP servers. "
            f"Allow it: agentcore mcp trust {project}, or for this once: --mcp {project}"
        ),
    ]
    ended = cli.run("mcp", "list", "--json")
    assert [line.get("state") for line in ended.lines] == [
        "ready",
        "needs NOT_SET",
        "disabled",
        "not allowed yet",
        None,
    ]
    assert "hunter2" not in ended.out
    assert started(cli) == 0


def test_add_writes_what_can_be_read_and_refuses_the_rest(cli: Cli) -> None:
    def add(*arguments: str) -> str:
        ended = cli.run("mcp", "add", *arguments)
        assert ended.code == 2
        return " ".join(ended.err.split()).removeprefix("error: ")

    header = ("--header", "Authorization: Bearer ${TOKEN}")
    assert cli.run("mcp", "add", "docs", "https://example.org/mcp", *header, "--transport", "sse").code == 0
    assert cli.run("mcp", "add", "time", "--env", "A=b=c", "--cwd", "sub", "--", "uvx", "-q", "server").code == 0
    assert json.loads((cli.project.parent / USER).read_text()) == {
        "mcpServers": {
            "docs": {"type": "sse", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "time": {"command": "uvx", "args": ["-q", "server"], "env": {"A": "b=c"}, "cwd": f"{cli.project}/sub"},
        }
    }
    assert add("docs", "--", "x").startswith("There is an MCP server called 'docs' already.")
    assert add("new", *header, "--", "x") == "--header is for an address, and this is a command. Pass --env NAME=VALUE."
    assert add("new", "https://x", "--env", "A=b") == "--env and --cwd are for a command, and this is an address."
    assert add("new", "--transport", "sse", "--", "x") == "--transport sse is for an address, and this is a command."
    assert add("new", "https://x", "--header", "Bearer").startswith("--header is a name, ':' and a value, as in")
    assert (
        add("new", "ftp://x")
        == "'ftp://x' is not an address of an MCP server. Use one that begins with http:// or https://."
    )
    assert add("n" * 65, "--", "x") == "name: String should have at most 64 characters"
    assert cli.run("mcp", "remove", "docs").code == 0
    assert cli.run("mcp", "remove", "docs").code == 2
    assert list(json.loads((cli.project.parent / USER).read_text())["mcpServers"]) == ["time"]
    ended = cli.run("mcp", "add", "open", "https://x", "--header", "Authorization: Bearer abc")
    assert "Authorization is in the file as it was given." in ended.out


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": {} /* mine */}', "\xff"])
def test_a_file_that_would_lose_something_is_not_changed(cli: Cli, content: str) -> None:
    path = write(cli.project.parent / USER)
    path.write_bytes(content.encode("latin-1"))
    ended = cli.run("mcp", "add", "new", "--", "x")
    assert (ended.code, path.read_bytes()) == (2, content.encode("latin-1"))
    assert USER in ended.err


def test_trust_shows_everything_and_a_no_allows_nothing(cli: Cli) -> None:
    file = write(cli.project / ".mcp.json", theirs=tiny(cwd="sub"), web={"url": "https://x", "headers": {"A": "${B}"}})
    assert cli.run("mcp", "trust", "--workspace", "..").code == 2
    assert cli.run("mcp", "trust", "nothing").code == 2
    code, screen = cli.on_terminal("mcp", "trust", answers=[("Allow them? [y/N] ", "no\n")])
    assert code == 1
    for part in ("in sub", "TINY_NOTE=${HOME}/started", "web  https://x", "A: ${B}", "Nothing was allowed."):
        assert part in screen.text
    code, _ = cli.on_terminal("mcp", "trust", str(file), answers=[("Allow them? [y/N] ", "yes\n")])
    assert code == 0
    assert cli.run("mcp", "check", "theirs").code == 1  # there is no such folder as `sub`
    assert started(cli) == 0


@needs_bubblewrap
def test_with_a_sandbox_the_projects_servers_are_in_it_and_the_users_on_this_machine(cli: Cli) -> None:
    outside = cli.project.parent / "outside"
    outside.write_text("secret")
    (cli.project / "tiny.py").write_bytes(Path(TINY).read_bytes())
    inside = {"command": "python3", "args": ["tiny.py"], "env": {"TINY_NOTE": "noted", "TINY_LOOK": str(outside)}}
    write(cli.project / ".mcp.json", theirs=inside)
    own = tiny()
    own["env"]["TINY_LOOK"] = str(outside)
    write(cli.project.parent / USER, own=own)
    register_workspace("bubblewrap", restore)  # an entry point does that where this version is installed
    with cli.serve("Done.", "Again.", "Once more.") as provider:
        address = ("--base-url", provider.base_url)
        run = ("run", "Do it.", "-m", "mine", *address, "--sandbox", "bubblewrap")
        code, screen = cli.on_terminal(*run, answers=[("Use them? [y/N] ", "y\n")])
        assert (code, tools_of(provider)) == (0, ["mcp__own__echo", "mcp__theirs__echo"]), screen.text
        assert "Programs run in the sandbox" in screen.text
        assert cli.run("resume", "Go on, please.", *address).code == 0
        assert tools_of(provider) == ["mcp__own__echo", "mcp__theirs__echo"]
        # A file that is named and in the folder may be the agent's own work.
        assert cli.run(*run, "--no-mcp", "--mcp", ".mcp.json").code == 0
        assert tools_of(provider) == ["mcp__theirs__echo"]
    assert (cli.project / "noted").read_text() == "False\n" * 3
    assert (cli.project.parent / "started").read_text() == "True\n" * 2
