"""The arguments of a `DockerWorkspace`: what is wrong is refused with what to write instead, before anything is made."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentcore.errors import WorkspaceError
from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.docker.address import check_address, find_address
from agentcore_sandbox.docker.config import container_config, find_loosened, first_command
from agentcore_sandbox.docker.errors import EngineUnreachable
from agentcore_sandbox.docker.facts import EngineFacts, read_engine_facts
from agentcore_sandbox.docker.mounts import Placed, place
from agentcore_sandbox.docker.options import parse_size
from boxes_docker import make_options

INFO: dict[str, Any] = {
    "SecurityOptions": ["name=seccomp,profile=default"],
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "NCPU": 2,
    "Driver": "overlay2",
    "DockerRootDir": "/srv/docker-of-tests",
    "Runtimes": {"runc": {}},
}


def facts(address: str = "unix:///srv/docker-of-tests.sock", **changes: Any) -> EngineFacts:
    return read_engine_facts(address, {**INFO, **changes})


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        ({"image": ""}, "image='python:3.12-slim'"),
        ({"image": "--privileged"}, "image='python:3.12-slim'"),
        ({"image": "../containers/json"}, "image='python:3.12-slim'"),
        ({"mount": "project"}, f"write mount='{os.getcwd()}/project'"),
        ({"mount": "."}, f"write mount='{os.getcwd()}'"),
        ({"mount": "/srv", "copy": "/srv"}, "not both"),
        ({"mount": "/srv", "disk": "1g"}, "copy= in place of mount="),
        ({"network": "host"}, "network='none'"),
        ({"network": "bridge"}, '"full"'),
        ({"memory": "2 gigs"}, "memory='2g'"),
        ({"memory": "1m"}, "at least '64m'"),
        ({"memory": -1}, "memory='2g'"),
        ({"cpus": 0}, "cpus=0.5"),
        ({"cpus": float("inf")}, "cpus=0.5"),
        ({"pids": 1}, "at least 16"),
        ({"user": "agent"}, "user='1000:1000'"),
        ({"user": -1}, "user='1000:1000'"),
        ({"user": "99999999999"}, "user='1000:1000'"),
        ({"pull": "sometimes"}, "'never'"),
        ({"box": "../../etc"}, "agentcore sandbox list"),
        ({"labels": {"colour": "red"}}, "'conversation'"),
        ({"labels": {"owner": "a\nb"}}, "one short line"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_write(arguments: dict[str, Any], instead: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        DockerWorkspace(arguments.pop("image", "image:1"), **arguments)
    assert instead in str(refused.value)


@pytest.mark.parametrize(
    "arguments", [{"memory": 1.5}, {"cpus": "2"}, {"keep": 1}, {"env": {"A": 1}}, {"mounts": "/x"}]
)
def test_an_argument_of_another_type_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        DockerWorkspace("image:1", **arguments)


def test_sizes_are_read_as_people_write_them() -> None:
    shown = {
        "512": 512,
        "64k": 65536,
        "1.5m": 1572864,
        "2g": 2 << 30,
        "2GB": 2 << 30,
        "2GiB": 2 << 30,
        " 1 t ": 1 << 40,
    }
    assert {text: parse_size("memory", text) for text in shown} == shown


def test_a_record_makes_the_same_again_and_holds_no_value_of_a_variable() -> None:
    made = make_options(memory="1g", user="1001", env={"TOKEN": "s3cret"})
    assert "s3cret" not in repr(made)
    assert "s3cret" not in str(made.record())
    assert made.record()["env"] == ["TOKEN"]
    params: dict[str, Any] = {name: value for name, value in made.record().items() if name != "env"}
    again = make_options(**params)
    assert again == make_options(memory="1g", user="1001:1001")


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """Return a folder that does not belong to root."""
    if os.getuid() == 0:
        os.chown(tmp_path, 1234, 4321)
    return tmp_path


def test_a_mounted_folder_makes_its_owner_the_user(owned: Path) -> None:
    found = os.stat(owned)
    assert place(make_options(mount=owned), facts()) == Placed(folder=str(owned), user=(found.st_uid, found.st_gid))
    assert place(make_options(mount=owned, user="7:8"), facts()).user == (7, 8)
    assert place(make_options(), facts()) == Placed(folder=None, user=(1000, 1000))


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        yield path


def test_what_would_open_the_machine_is_no_mount(
    owned: Path, listening: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".local/state/agentcore/logs").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("AGENTCORE_HOME", str(owned / "home of agentcore"))
    engine = owned / "engine"
    (engine / "volumes").mkdir(parents=True)
    (owned / "home of agentcore" / "x").mkdir(parents=True)
    (owned / "run").mkdir()
    (owned / "link").symlink_to("/")
    (owned / "file").write_text("")
    known = facts(f"unix://{owned}/run/docker.sock", DockerRootDir=str(engine))

    def refusal(mount: object) -> str:
        with pytest.raises(WorkspaceError, match="mount=") as refused:
            place(make_options(mount=mount), known)
        return str(refused.value)

    for mount, reason in (
        ("/", "whole machine"),
        (owned / "link", "whole machine"),
        (home, "home folder"),
        (home.parent, "home folder"),
        ("/etc", "folder of the system"),
        ("/usr/share", "folder of the system"),
        ("/proc/self/root", "whole machine"),
        (listening, "is a socket"),
        (owned / "run", "socket"),
        (engine, "engine's own"),
        (engine / "volumes", "engine's own"),
        (owned, "own folders"),
        (home / ".local/state/agentcore/logs", "agentcore's own"),
        (owned / "home of agentcore" / "x", "agentcore's own"),
        (owned / "file", "not a folder"),
        (owned / "none", "No such file"),
    ):
        assert reason in refusal(mount), mount


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_of_root_is_refused_unless_root_inside_is_asked_for(tmp_path: Path) -> None:
    os.chown(tmp_path, 0, 0)
    with pytest.raises(WorkspaceError, match="chown -R 1000:1000"):
        place(make_options(mount=tmp_path), facts())
    placed = place(make_options(mount=tmp_path, user="0:0"), facts())
    assert placed.user == (0, 0)
    assert "Commands run as root inside, without capabilities." in list(
        find_loosened(make_options(mount=tmp_path, user="0:0"), facts(), placed)
    )


def test_an_engine_that_maps_users_mounts_nothing(owned: Path) -> None:
    with pytest.raises(WorkspaceError, match="copy= in place of mount="):
        place(make_options(mount=owned), facts(SecurityOptions=["name=seccomp,profile=default", "name=rootless"]))


def test_what_an_engine_cannot_do_stands_in_the_record() -> None:
    placed = Placed(folder=None, user=(1000, 1000))
    assert list(find_loosened(make_options(disk="1g"), facts(), placed)) == []
    weak = facts(SecurityOptions=["name=seccomp,profile=unconfined"], MemoryLimit=False, PidsLimit=False)
    assert list(find_loosened(make_options(network="full"), weak, placed)) == [
        "Commands reach every network that this machine does.",
        "Commands reach what listens on all addresses of this machine.",
        "This engine runs containers without a seccomp filter.",
        "This engine cannot limit memory.",
        "This engine cannot limit how many processes there are.",
        "Nothing limits how much commands write on the disk.",
    ]


def test_the_configuration_of_a_container_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-program")
    made = make_options(env={"TOKEN": "s3cret"}, cpus=64)
    config = container_config(
        made,
        facts(),
        Placed(folder="/srv/project", user=(1001, 1002)),
        image="sha256:1",
        labels={"a": "b"},
        volumes={"v": "/agentcore"},
        command=first_command(60),
    )
    text = str(config)
    assert "s3cret" not in text
    assert "sk-of-this-program" not in text
    host = config["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"], host["Privileged"]) == (["ALL"], ["no-new-privileges:true"], False)
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["NanoCpus"]) == (True, "none", 2_000_000_000)
    assert host["Memory"] == host["MemorySwap"] == 2 << 30
    assert (config["User"], config["Env"], config["Healthcheck"]) == ("1001:1002", [], {"Test": ["NONE"]})
    assert not {"Devices", "CapAdd", "Binds", "PidMode", "UsernsMode", "GroupAdd"} & set(host)


def test_only_an_engine_of_this_machine_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("unix:///run/docker.sock", "tcp://127.0.0.1:2375", "tcp://localhost:1", "tcp://[::1]:2"):
        assert check_address(address) == address
    for address in (
        "tcp://192.0.2.7:2375",
        "tcp://127.0.0.1",
        "tcp://:9",
        "ssh://host",
        "http://127.0.0.1:1",
        "docker.sock",
    ):
        with pytest.raises(EngineUnreachable, match="unix:///PATH"):
            check_address(address)
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    with pytest.raises(EngineUnreachable, match="TLS"):
        check_address("tcp://127.0.0.1:2376")
    monkeypatch.setenv("DOCKER_HOST", "ssh://elsewhere")
    with pytest.raises(EngineUnreachable, match="DOCKER_HOST is 'ssh://elsewhere'"):
        find_address()


async def test_without_an_engine_it_says_what_to_do(
    anyio_backend_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    expected = "BubblewrapWorkspace" if anyio_backend_name == "trio" else "systemctl start docker"
    with pytest.raises(WorkspaceError, match=expected):
        async with DockerWorkspace("image:1"):
            pass
