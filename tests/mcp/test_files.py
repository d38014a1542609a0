"""Files of MCP servers: both shapes, what other programs write in them, and every fault by its key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.mcp import MCPFile, MCPServer, read_mcp_file
from agentcore.mcp.entries import KNOWN
from agentcore.mcp.files import combine_files, find_project_files, parse_mcp_file


def write(folder: Path, content: object, name: str = ".mcp.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def read(folder: Path, content: object, name: str = ".mcp.json") -> MCPFile:
    return read_mcp_file(write(folder, content, name))


def entry(folder: Path, **keys: Any) -> MCPServer:
    """Read the one server of an entry without a fault."""
    file = read(folder, {"mcpServers": {"x": keys}})
    assert file.problems == ()
    return file.servers[0]


def fault(folder: Path, **keys: Any) -> str:
    """Return the one problem of an entry beside a good one, which is read."""
    file = read(folder, {"mcpServers": {"x": keys, "good": {"command": "true"}}})
    assert [server.name for server in file.servers] == ["good"]
    (problem,) = file.problems
    assert problem.server == "x"
    return str(problem).removeprefix(f"{folder}/.mcp.json: mcpServers.x").removeprefix(".")


def test_a_file_in_the_common_shape(tmp_path: Path) -> None:
    servers = {
        "git": {"command": "uvx", "args": ["mcp-server-git", 7], "env": {"PORT": 80, "GONE": None}, "cwd": "sub"},
        "docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-x}"}},
        "old": {"type": "sse", "url": "https://example.org/sse", "timeout": 60000},
    }
    file = read(tmp_path, {"mcpServers": servers})
    assert file.problems == ()
    assert file.readable
    assert file.servers == (
        MCPServer(
            name="git", command="uvx", args=("mcp-server-git", "7"), env={"PORT": "80"}, cwd="sub", runs="workspace"
        ),
        MCPServer(
            name="docs",
            url="https://example.org/mcp",
            transport="http",
            headers={"Authorization": "Bearer ${TOKEN:-x}"},
            runs="workspace",
        ),
        MCPServer(name="old", url="https://example.org/sse", transport="sse", call_seconds=60, runs="workspace"),
    )


def test_a_file_of_vs_code_with_comments_last_commas_and_its_variables(tmp_path: Path) -> None:
    text = """{
      // what the editor writes
      "inputs": [{"id": "key", "type": "promptString"}],
      "servers": {
        "a": {"type": "stdio", "command": "${workspaceFolder}/run", "args": ["${env:HOME}", "http://x//y"], /* so */ },
        "b": {"command": "run", "env": {"KEY": "${input:key}"}},
        "c": {"command": "run", "args": ["${workspaceFolder}/x"], "cwd": "${workspaceFolder}/tools/c"},
      },
    }"""
    file = read(tmp_path, text, ".vscode/mcp.json")
    a, c = file.servers
    assert (a.command, a.args) == ("./run", ("${HOME}", "http://x//y"))
    assert (c.args, c.cwd) == (("../../x",), "./tools/c")
    path = f"{tmp_path}/.vscode/mcp.json"
    assert [str(problem) for problem in file.problems] == [
        f"{path}: servers.b.env.KEY: ${{input:key}} is not supported. Write ${{VAR}}, and set the variable VAR.",
        f"{path}: inputs: It is not supported. Write ${{VAR}} where a value is wanted, and set the variable VAR.",
    ]


def test_on_the_host_paths_are_those_of_the_project(tmp_path: Path) -> None:
    entries = {"a": {"command": "${workspaceFolder}/run", "cwd": "sub"}, "b": {"command": "run", "cwd": "${HERE}/x"}}
    a, b = read_mcp_file(write(tmp_path, {"servers": entries}, ".vscode/mcp.json"), runs="host").servers
    assert (a.command, a.cwd, a.runs) == (f"{tmp_path}/run", f"{tmp_path}/sub", "host")
    assert b.cwd == "${HERE}/x"


@pytest.mark.parametrize(
    ("keys", "transport"),
    [
        ({"command": "run"}, "stdio"),
        ({"command": "run", "type": "stdio"}, "stdio"),
        ({"url": "http://localhost:1/mcp"}, "http"),
        ({"url": "${BASE}/mcp", "type": "streamable-http"}, "http"),
        ({"url": "http://x", "type": "streamableHttp"}, "http"),
        ({"url": "http://x", "transport": "sse"}, "sse"),
        ({"httpUrl": "http://x"}, "http"),
        ({"serverUrl": "http://x"}, "http"),
    ],
)
def test_the_transport_is_named_or_follows_from_the_rest(tmp_path: Path, keys: dict[str, Any], transport: str) -> None:
    assert entry(tmp_path, **keys).transport == transport


BAD_ENTRIES: list[tuple[dict[str, Any], str]] = [
    ({}, ": It has neither `command` nor `url`. Write the program to start, or the server's address."),
    ({"command": "a", "url": "http://b"}, "url: There is `command` too. Write one of them: a program to start, or an address."),
    ({"url": "http://a", "httpUrl": "http://b"}, "httpUrl: There is `url` too. Write one of them."),
    ({"command": "a", "type": "ws"}, 'type: There is no transport \'ws\'. Write "stdio", "http" or "sse".'),
    ({"command": "a", "type": ["stdio"]}, "type: There is no transport ['stdio']. Write \"stdio\", \"http\" or \"sse\"."),
    ({"type": "stdio", "url": "http://a"}, 'type: "stdio" is for a `command`, and this is a `url`. Write "http" or "sse".'),
    ({"type": "stdio"}, 'command: It is missing. Write the program, as in "command": "npx".'),
    ({"type": "http"}, 'url: It is missing. Write the address of the server, or "type": "stdio".'),
    ({"url": "ws://a"}, "url: An address begins with https:// or http://."),
    ({"command": ["npx", "-y"]}, "command: Write it as text, in quotes."),
    ({"command": "a", "args": "-y"}, 'args: Write it as a list, as in ["-y", "a-server"].'),
    ({"command": "a", "args": ["-y", {}]}, "args[1]: Write it as text, in quotes."),
    ({"command": "a", "env": ["A=b"]}, 'env: Write it as an object, as in {"NAME": "value"}.'),
    ({"command": "a", "env": {"A": True}}, "env.A: Write it as text, in quotes."),
    ({"command": "a", "env": {"A=B": "c"}}, "env.A=B: This is not a name."),
    ({"command": "a\0"}, "command: It has characters that are not text. Write it anew."),
    ({"command": "a", "args": ["\ud800"]}, "args[0]: It has characters that are not text. Write it anew."),
    ({"url": "http://a", "headers": {"A": "b\r\nC: d"}}, "headers.A: A header is one line of text."),
    ({"command": "a", "timeout": "1 s"}, "timeout: Write a number of milliseconds, as in 60000."),
    ({"command": "a", "timeout": -1}, "timeout: Write a number of milliseconds, as in 60000."),
    ({"command": "a", "disabled": "yes"}, "disabled: Write true or false."),
    ({"command": "a", "auth": "basic"}, 'auth: It can be "oauth", for a url. Write other credentials in `headers` or `env`.'),
    ({"command": "${workspaceFolder}/a", "cwd": "/x"}, "command: `${workspaceFolder}` is not known with such a `cwd`. Write a path."),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "problem"), BAD_ENTRIES)
def test_a_bad_entry_is_left_out_by_its_key_and_the_others_are_read(
    tmp_path: Path, keys: dict[str, Any], problem: str
) -> None:
    assert fault(tmp_path, **keys) == problem


@pytest.mark.parametrize("value", [None, 1, "npx", ["npx"]])
def test_an_entry_that_is_not_an_object(tmp_path: Path, value: object) -> None:
    file = read(tmp_path, {"mcpServers": {"x": value}})
    (problem,) = file.problems
    assert (problem.key, problem.server, file.servers) == ("mcpServers.x", "x", ())
    assert problem.sentence.startswith("A server is an object, as in")


def fault_of_name(folder: Path, name: str) -> str:
    (problem,) = read(folder, {"mcpServers": {name: {"command": "a"}}}).problems
    return problem.sentence


def test_a_name_that_is_none_is_a_problem(tmp_path: Path) -> None:
    file = read(tmp_path, {"mcpServers": {"": {"command": "a"}, "n" * 65: {"command": "a"}}})
    assert [problem.sentence for problem in file.problems] == [
        "name: String should have at least 1 character",
        "name: String should have at most 64 characters",
    ]
    assert fault_of_name(tmp_path, "a\ud800") == "The name has characters that are not text. Write it anew."


def test_a_name_that_stands_twice_means_the_first(tmp_path: Path) -> None:
    text = """{"mcpServers": {"x": {"command": "first"}, "x": {"command": "second"}, "y": {"command": "1", "command": "2"}},
               "servers": {"x": {"command": "third"}, "z": {"command": "z"}}}"""
    file = read(tmp_path, text)
    assert [(server.name, server.command) for server in file.servers] == [("x", "first"), ("z", "z")]
    assert [(problem.key, problem.server) for problem in file.problems] == [
        ("mcpServers.x", None),
        ("mcpServers.y.command", "y"),
        ("servers.x", "x"),
    ]


def test_of_two_files_with_one_name_the_first_is_taken_and_the_other_is_named(tmp_path: Path) -> None:
    first = read(tmp_path / "a", {"mcpServers": {"x": {"command": "first"}, "same": {"command": "s"}}})
    second = read(
        tmp_path / "b", {"mcpServers": {"x": {"command": "second"}, "same": {"command": "s"}, "y": {"command": "y"}}}
    )
    servers, problems = combine_files([first, second])
    assert [(server.name, server.command) for server in servers] == [("x", "first"), ("same", "s"), ("y", "y")]
    assert [str(problem) for problem in problems] == [
        f"{second.path}: x: {first.path} has a server of this name too, and that one is used. Rename this one."
    ]


def test_permissions_in_a_file_are_named_and_not_given(tmp_path: Path) -> None:
    keys = {"alwaysAllow": ["*"], "autoApprove": ["x"], "trust": True, "trusted_hints": True}
    file = read(tmp_path, {"mcpServers": {"x": {"command": "a", **keys}}})
    assert file.servers == (MCPServer(name="x", command="a", runs="workspace"),)
    assert [problem.key.rpartition(".")[2] for problem in file.problems] == list(keys)
    assert {problem.sentence for problem in file.problems} == {
        "It is ignored: a file does not give permission. See --confirm."
    }


def test_a_file_does_not_say_where_its_programs_run(tmp_path: Path) -> None:
    file = read(tmp_path, {"mcpServers": {"x": {"command": "a", "runs": "host"}}})
    assert file.servers[0].runs == "workspace"
    assert file.problems[0].sentence == "It is ignored: there is no such key."


def test_other_keys_are_ignored_with_a_word_and_the_server_is_read(tmp_path: Path) -> None:
    keys = {"comand": "b", "envFile": ".env", "headers": {"A": "b"}, "description": "Mine.", "oauth": {}}
    file = read(tmp_path, {"mcpServers": {"x": {"command": "a", **keys}, "y": {"url": "http://y", "args": []}}})
    assert [server.name for server in file.servers] == ["x", "y"]
    assert [f"{problem.key}: {problem.sentence}" for problem in file.problems] == [
        "mcpServers.x.comand: It is ignored: there is no such key. Did you mean `command`?",
        "mcpServers.x.envFile: It is ignored: write its variables in `env`.",
        "mcpServers.x.headers: It is ignored: it is for a `url`.",
        'mcpServers.x.oauth: It is ignored: write "auth": "oauth".',
        "mcpServers.y.args: It is ignored: it is for a `command`.",
    ]


def test_a_disabled_server_is_not_among_the_servers(tmp_path: Path) -> None:
    entries = {
        "a": {"command": "a", "disabled": True},
        "b": {"command": "b", "enabled": False},
        "c": {"command": "c", "disabled": False, "enabled": True},
    }
    file = read(tmp_path, {"mcpServers": entries})
    assert [server.name for server in file.servers] == ["c"]
    assert [server.name for server in file.disabled] == ["a", "b"]


def test_patterns_of_tools_in_the_words_of_several_programs(tmp_path: Path) -> None:
    server = entry(tmp_path, command="a", includeTools=["get_*"], excludeTools=["x"], disabledTools=["y"])
    assert (server.include, server.exclude) == (("get_*",), ("x", "y"))
    server = entry(tmp_path, command="a", include=["b"], exclude=["c"])
    assert (server.include, server.exclude) == (("b",), ("c",))


@pytest.mark.parametrize(("timeout", "seconds"), [(60_000, 60), (1_000, 1), (90, 90), (0.5, 0.5)])
def test_a_timeout_is_in_milliseconds_unless_that_would_be_no_time(
    tmp_path: Path, timeout: float, seconds: float
) -> None:
    assert entry(tmp_path, command="a", timeout=timeout).call_seconds == seconds


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"mcpServers": {\n  "x": {"command" "a"}}}', "line 2, column 19: this is not JSON: Expecting ':' delimiter."),
        ("", "line 1, column 1: this is not JSON: Expecting value."),
        ("[" * 100_000, "its lists and objects are nested too deeply."),
        ('{"mcpServers": ' + "9" * 5_000 + "}", "this is not JSON: Exceeds the limit"),
        ("[]", "It has no servers. Write"),
        ("{}", "It has no servers. Write"),
        ('{"x": {"command": "a"}}', "It has no servers. Write"),
        (" " * 1_000_001, "It has more than 1,000,000 bytes."),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, content: str, reason: str) -> None:
    file = read(tmp_path, content)
    assert (file.servers, file.readable) == ((), False)
    (problem,) = file.problems
    assert str(problem).startswith(f"{tmp_path}/.mcp.json: {reason}")


def test_what_is_not_a_file_of_text(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe{}")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    reasons = {
        name: read_mcp_file(tmp_path / name).problems[0].sentence for name in ("bytes", "pipe", "folder", "none")
    }
    assert reasons == {
        "bytes": "It is not UTF-8.",
        "pipe": "It is not a file.",
        "folder": "It cannot be read: Is a directory.",
        "none": "No such file.",
    }


def test_servers_that_are_not_an_object_and_a_mark_at_the_beginning(tmp_path: Path) -> None:
    file = read(tmp_path, '\ufeff{"mcpServers": [], "servers": {"a": {"command": "a"}}}')
    assert [server.name for server in file.servers] == ["a"]
    assert file.problems[0].key == "mcpServers"


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    one, two = '{"mcpServers": {}}', '{"mcpServers": {"a": {}}}'
    assert read(tmp_path, one).digest == read(tmp_path / "sub", one).digest != read(tmp_path, two).digest


def test_the_files_of_a_project(tmp_path: Path) -> None:
    assert find_project_files(str(tmp_path)) == []
    write(tmp_path, {}, ".vscode/mcp.json")
    write(tmp_path, {})
    assert find_project_files(str(tmp_path)) == [f"{tmp_path}/.mcp.json", f"{tmp_path}/.vscode/mcp.json"]


def test_values_are_not_in_the_repr(tmp_path: Path) -> None:
    assert "hunter2" not in repr(entry(tmp_path, command="a", env={"KEY": "hunter2"}))


@pytest.mark.parametrize("piece", ["/*", '\\"', '"\\', ",", ", ", "//", "{", '"a":'])
def test_a_megabyte_of_anything_is_read_in_a_moment(tmp_path: Path, piece: str) -> None:
    assert read(tmp_path, (piece * 1_000_000)[:999_999]).readable is False


_texts = (
    st.sampled_from(["", "run", "http://a", "${A}", "${workspaceFolder}/a", "${input:a}", "stdio", "\0", "\ud800"])
    | st.text()
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_entries = st.dictionaries(st.sampled_from(KNOWN), _json, max_size=6) | _json


@given(st.dictionaries(_texts, _entries, max_size=4), st.sampled_from(["host", "workspace"]))
def test_whatever_a_file_holds_is_servers_and_problems(servers: dict[str, Any], runs: Any) -> None:
    file = parse_mcp_file(".mcp.json", json.dumps({"mcpServers": servers}).encode(), runs=runs)
    left_out = {problem.server for problem in file.problems} - {None}
    read_servers = (*file.servers, *file.disabled)
    assert left_out | {server.name for server in read_servers} == set(servers)
    for server in read_servers:
        assert server.runs == runs
        assert not server.trusted_hints
        assert MCPServer.model_validate_json(server.model_dump_json()) == server
    assert all("\n" not in problem.sentence for problem in file.problems)
