"""`agentcore serve`: how it starts, and why it does not."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_a_model_of_one_s_own_is_named_with_its_address(cli: Cli) -> None:
    refused = cli.run("serve", "--model", "mine", "--log", "none")
    assert (refused.code, "--base-url" in refused.err) == (2, True), refused.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        address = ("--base-url", "http://127.0.0.1:9/v1")
        begun = cli.run("serve", "--model", "mine", *address, "--port", port, "--log", "none")
    assert (begun.code, f"127.0.0.1:{port} is in use" in begun.err) == (2, True), begun.err


@pytest.mark.skipif(os.geteuid() != 0, reason="it has to run as root")
@pytest.mark.parametrize(("kind", "told"), [("docker", True), ("bubblewrap", False)])
def test_a_server_that_runs_as_root_says_which_folders_containers_refuse(cli: Cli, kind: str, told: bool) -> None:
    pytest.importorskip("aiodocker")
    with cli.start("serve", "--sandbox", kind, "--port", "0", "--store", str(cli.home)) as started:
        started.shows('"url"')
        assert ("This server runs as root" in started.text) is told
        assert ("chown -R 1000:1000" in started.text) is told
        started.process.send_signal(signal.SIGTERM)
        assert started.ends() == 0
