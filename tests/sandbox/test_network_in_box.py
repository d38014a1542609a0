"""Allowed hosts from inside of a box: reached through the proxy, and all others refused with a sentence that the model reads."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore.errors import WorkspaceLost
from agentcore.tools import Observation
from agentcore.workspace import CommandResult
from agentcore_sandbox import Allow, BubblewrapWorkspace, DockerWorkspace
from agentcore_sandbox.network.proxy import PROXY_PORT, Proxy
from agentcore_sandbox.network.refusals import NetworkRefusal
from agentcore_sandbox.networking import format_refusals
from agentcore_sandbox.workspace import BoxWorkspace
from agentcore_tools import TerminalObservation, run_tool
from boxes_network import Names, Responder, listening, permit_loopback
from boxes_places import CONFINED_QUICK, KINDS, Kind, open_box, skip_trio
from opened_tool import Place, open_terminal, open_tool

FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
REFUSED = "[network] refused.test:80 is not among the allowed hosts."
ADVICE = "[network] This is the sandbox's policy. If a host is needed, ask the user to allow it."


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, anyio_backend_name: str) -> Kind:
    skip_trio(request.param, anyio_backend_name)
    return request.param


@pytest.fixture(params=CONFINED_QUICK)
def confined(request: pytest.FixtureRequest, anyio_backend_name: str) -> Kind:
    skip_trio(request.param, anyio_backend_name)
    return request.param


class World:
    """A box whose one allowed host is a server of the test."""

    def __init__(self, box: BoxWorkspace, server: Responder, port: int, names: Names) -> None:
        self.box = box
        self.server = server
        self.url = f"http://allowed.test:{port}/"
        self.names = names

    async def fetch(self, url: str) -> CommandResult:
        return await self.box.run(["python3", "-c", FETCH, url])


@asynccontextmanager
async def open_world(kind: Kind, folder: Path, *, env: dict[str, str] | None = None) -> AsyncGenerator[World]:
    server = Responder()
    names = Names(allowed_test="127.0.0.1", inner_test="10.1.2.3")
    with anyio.fail_after(60):
        async with listening(server.handle) as port:
            allow = Allow(f"allowed.test:{port}", "inner.test")
            make = partial(Proxy, resolve=names.resolve, permits_address=permit_loopback)
            async with open_box(kind, folder, allow=allow, make_proxy=make, env=env) as box:
                yield World(box, server, port, names)


async def test_an_allowed_host_is_reached_by_programs_that_know_proxies(kind: Kind, tmp_path: Path) -> None:
    async with open_world(kind, tmp_path) as world:
        result = await world.fetch(world.url)
        assert (result.stdout, result.stderr, result.exit_code) == ("ok\n", "", 0)
        assert world.names.asked == ["allowed.test"]
        # git speaks through libcurl; what answers is not a repository.
        await world.box.run(["git", "ls-remote", f"{world.url}repository"])
        received = await world.server.wait_ended(2)
        assert received[1].startswith(b"GET /repository/info/refs?service=git-upload-pack HTTP/1.1\r\n")


async def test_a_refused_host_is_answered_with_403_and_a_sentence_that_the_command_shows(
    kind: Kind, tmp_path: Path
) -> None:
    async with open_world(kind, tmp_path) as world:
        result = await world.fetch("http://refused.test/")
        assert "HTTP Error 403: refused.test:80 is not among the allowed hosts." in result.stderr
        assert result.stderr.endswith(f"{REFUSED}\n{ADVICE}\n")
        # Also where the program itself shows nothing.
        quiet = await world.box.run("git ls-remote http://refused.test/x 2>/dev/null; true")
        assert quiet.stderr == f"{REFUSED}\n{ADVICE}\n"
        assert (await world.box.run("echo fine")).stderr == ""


async def test_addresses_and_names_of_private_ones_are_refused(kind: Kind, tmp_path: Path) -> None:
    async with open_world(kind, tmp_path) as world:
        for url, host in (
            ("http://169.254.169.254/latest/meta-data/", "169.254.169.254:80"),
            ("http://[fd00:ec2::254]/", "[fd00:ec2::254]:80"),
            ("http://10.0.0.1/", "10.0.0.1:80"),
            ("http://inner.test/", "inner.test:80"),
        ):
            result = await world.fetch(url)
            assert result.exit_code == 1
            assert f"[network] {host} " in result.stderr
        assert world.server.accepted == 0


async def test_without_the_proxy_there_is_no_network_and_no_dns(confined: Kind, tmp_path: Path) -> None:
    async with open_world(confined, tmp_path) as world:
        script = (
            "import json, socket\n"
            "found = {'names': [name for _, name in socket.if_nameindex()]}\n"
            "for address in ('169.254.169.254', '10.0.0.1', '192.0.2.1'):\n"
            "    try: socket.create_connection((address, 80), 5)\n"
            "    except OSError as error: found[address] = error.strerror\n"
            "try: socket.getaddrinfo('allowed.test', 80)\n"
            "except OSError as error: found['dns'] = type(error).__name__\n"
            "print(json.dumps(found))"
        )
        assert json.loads((await world.box.run(["python3", "-c", script])).stdout) == {
            "names": ["lo"],
            "169.254.169.254": "Network is unreachable",
            "10.0.0.1": "Network is unreachable",
            "192.0.2.1": "Network is unreachable",
            "dns": "gaierror",
        }


async def test_commands_find_the_proxy_by_variables_and_their_own_go_before_them(kind: Kind, tmp_path: Path) -> None:
    async with open_world(kind, tmp_path, env={"NO_PROXY": "mine"}) as world:
        shown = await world.box.run("echo $HTTPS_PROXY $https_proxy $NO_PROXY $no_proxy", env={"https_proxy": "called"})
        url, *rest = shown.stdout.split()
        assert url.startswith("http://127.0.0.1:")
        assert rest == ["called", "mine", "localhost,127.0.0.1,::1"]


async def test_the_terminal_and_the_tool_run_show_what_was_refused(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(kind, tmp_path) as world:
        fetch = f"python3 -c '{FETCH}' http://refused.test/ 2>/dev/null"

        @asynccontextmanager
        async def use(_: Path, **__: object) -> AsyncGenerator[BoxWorkspace]:
            yield world.box

        monkeypatch.setattr(Place, "open", staticmethod(use))
        async with open_terminal(tmp_path) as terminal:
            observation: TerminalObservation = await terminal(f"{fetch}; echo done")
            assert observation.text == f"{REFUSED}\n{ADVICE}\ndone\n"
            assert (await terminal(f"printf half; {fetch}; echo done")).text == f"halfdone\n{REFUSED}\n{ADVICE}\n"
            assert (await terminal("echo next")).text == "next\n"
        async with open_tool(run_tool(), tmp_path) as tool:
            answer: Observation = await tool(command=fetch)
            assert REFUSED in "".join(str(each) for each in answer.to_content())


async def test_the_proxy_is_there_again_after_the_helper_was_killed(kind: Kind, tmp_path: Path) -> None:
    async with open_world(kind, tmp_path) as world:
        with pytest.raises(WorkspaceLost):
            await world.box.run("kill -9 $PPID; sleep 1000")
        assert (await world.fetch(world.url)).stdout == "ok\n"


async def test_a_port_that_is_taken_inside_is_replaced_by_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with anyio.fail_after(60):
            while True:
                try:
                    taken.bind(("127.0.0.1", PROXY_PORT))
                    break
                except OSError:  # another test has it, and lets go of it
                    await anyio.sleep(0.02)
        taken.listen()
        async with open_world("plain", tmp_path) as world:
            assert (await world.fetch(world.url)).stdout == "ok\n"
            assert f":{PROXY_PORT}\n" not in (await world.box.run("echo $HTTP_PROXY")).stdout


def test_of_many_refusals_some_are_shown() -> None:
    refused = [
        NetworkRefusal(f"h{n}.test", 80, "host", f"h{n}.test:80 is not among the allowed hosts.") for n in range(30)
    ]
    lines = format_refusals(refused).splitlines()
    assert lines[9:] == [
        "[network] h9.test:80 is not among the allowed hosts.",
        "[network] 20 more were refused.",
        ADVICE,
    ]


def test_policies_are_recorded_and_a_private_host_stands_among_what_is_loosened(tmp_path: Path) -> None:
    allow = Allow("example.org", "10.0.0.5:8000")
    recorded = {"hosts": ["example.org", "10.0.0.5:8000"], "ports": [443, 80]}
    docker = DockerWorkspace("image:1", network=allow)
    assert docker.record().params["network"] == recorded
    params: dict[str, Any] = dict(docker.record().params)
    again = DockerWorkspace.from_record(**params)
    assert again.record().params["network"] == recorded
    assert BubblewrapWorkspace(tmp_path, network=allow).record().params["network"] == recorded


async def test_a_private_host_that_is_allowed_stands_in_the_record(confined: Kind, tmp_path: Path) -> None:
    allow = Allow("10.0.0.5:8000")
    box = (
        BubblewrapWorkspace(tmp_path, network=allow)
        if confined == "bubblewrap"
        else DockerWorkspace("sandbox-test:1", network=allow, labels={"owner": "agentcore tests"})
    )
    async with box as workspace:
        assert "Commands reach 10.0.0.5:8000, which is on a private network." in workspace.record().loosened
