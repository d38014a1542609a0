"""The life of a container as a workspace: made, protected, left, kept, found again, lost."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Agent, Conversation, MemoryStore
from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore.testing import ScriptedLLM
from agentcore.workspace import WorkspaceSpec, explain_exit
from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.box import Progress
from agentcore_sandbox.docker import labels as names
from agentcore_sandbox.docker.box import DockerBox
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.workspace import OUT_OF_MEMORY
from boxes_docker import container_of, find_image, inspect, left_behind, make_options, on_asyncio, wait_until
from boxes_shared import share, take_over

IMAGE = find_image()
pytestmark = on_asyncio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that does not belong to root, with a file."""
    (tmp_path / "file").write_text("from outside\n")
    if os.getuid() == 0:
        for path in (tmp_path, tmp_path / "file"):
            os.chown(path, 1234, 4321)
    return tmp_path


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-program")
    return "sk-of-this-program"


async def text_of(workspace: DockerWorkspace, command: str) -> str:
    result = await workspace.run(command)
    assert result.exit_code == 0, result.stderr
    return result.stdout


async def test_what_runs_inside_has_no_rights_no_network_and_limits(docker_image: str, owner: str, secret: str) -> None:
    seen: list[Progress] = []

    async def see(progress: Progress) -> None:
        seen.append(progress)

    async with DockerWorkspace(
        docker_image,
        labels={"owner": owner},
        env={"TOKEN": "s3cret"},
        memory="256m",
        pids=64,
        tmp_size="1m",
        on_progress=see,
    ) as workspace:
        assert [each.phase for each in seen] == ["create", "ready"]
        status = await text_of(workspace, "cat /proc/self/status")
        for line in (
            "CapEff:\t0000000000000000",
            "CapBnd:\t0000000000000000",
            "NoNewPrivs:\t1",
            "Seccomp:\t2",
            "Uid:\t1000\t",
        ):
            assert line in status
        assert await text_of(workspace, "ls /sys/class/net") == "lo\n"
        assert (await workspace.run("touch /usr/x")).exit_code != 0
        assert (await workspace.run("head -c 2000000 /dev/zero >/tmp/x")).exit_code != 0
        env = await text_of(workspace, "env; cat /proc/1/environ")
        assert "TOKEN=s3cret" in env
        assert secret not in env
        assert (
            await text_of(workspace, "echo hi >/tmp/y; touch ~/z; echo $HOME; pwd") == "/agentcore/home\n/workspace\n"
        )
        container = container_of(workspace)
        found = await inspect(container)
        assert "s3cret" not in str(found)
        assert found["HostConfig"]["Memory"] == 256 << 20
        labels = found["Config"]["Labels"]
        assert (labels[names.OWNER], labels[names.CONVERSATION]) == (owner, "")
        assert names.expiry_of(labels) is not None
        assert workspace.record().params["digest"] == found["Image"]


@pytest.mark.slow
async def test_out_of_memory_ends_the_command_and_not_the_box(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, labels={"owner": owner}, memory="96m") as workspace:
        with anyio.fail_after(60):
            result = await workspace.run(["python3", "-c", "a = bytearray(1 << 30); print(len(a))"])
        assert result.exit_code == 137
        assert [await explain_exit(workspace, 137), await explain_exit(workspace, 137)] == [OUT_OF_MEMORY, None]
        assert (await workspace.run("echo fine")).stdout == "fine\n"


BOMB = """
import os, time
try:
    while os.fork():
        pass
    time.sleep(1000)
except OSError:
    open("full", "w").close()
    time.sleep(1000)
"""


@pytest.mark.slow
async def test_files_and_listing_and_kill_work_where_no_process_can_be_started(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, labels={"owner": owner}, pids=24) as workspace:
        with anyio.fail_after(60):
            async with workspace.open_process(["python3", "-c", BOMB]):
                while (await workspace.stat("full")) is None:
                    await anyio.sleep(0.02)
                await workspace.write("more", "x")
                assert [entry.name for entry in await workspace.list()] == ["full", "more"]
            assert (await workspace.run("echo free")).stdout == "free\n"


@pytest.mark.slow
async def test_what_is_written_in_a_mounted_folder_belongs_to_its_owner(
    docker_image: str, owner: str, folder: Path
) -> None:
    async with DockerWorkspace(docker_image, mount=folder, labels={"owner": owner}) as workspace:
        assert await text_of(workspace, "cat file; mkdir -p made/in; echo inside >made/in/it") == "from outside\n"
        assert any(str(folder) in each for each in workspace.loosened)
    expected = os.stat(folder)
    for name in ("made", "made/in", "made/in/it"):
        found = os.stat(folder / name)
        assert (found.st_uid, found.st_gid) == (expected.st_uid, expected.st_gid)


@pytest.mark.slow
async def test_work_in_a_copy_leaves_the_folder_and_comes_back_by_download(
    docker_image: str, owner: str, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    back = tmp_path_factory.mktemp("back") / "work"
    async with DockerWorkspace(docker_image, copy=folder, labels={"owner": owner}) as workspace:
        assert await text_of(workspace, "cat file; echo changed >file") == "from outside\n"
        await workspace.download(".", back)
    assert (folder / "file").read_text() == "from outside\n"
    assert (back / "file").read_text() == "changed\n"


@pytest.mark.slow
async def test_a_kept_box_is_stopped_and_a_record_goes_back_to_it(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, keep=True, labels={"owner": owner}) as workspace:
        await workspace.write("note", "still here")
        name, spec = container_of(workspace), workspace.record()
    assert not (await inspect(name))["State"]["Running"]
    async with DockerWorkspace(docker_image, keep=True, box=str(spec.params["box"]), labels={"owner": owner}) as again:
        assert await again.read("note") == b"still here"
        assert container_of(again) == name
    # A container that is gone is made again, as long as its volumes are there.
    async with open_engine() as engine:
        await engine.remove_container(name)
    async with DockerWorkspace(docker_image, box=str(spec.params["box"]), labels={"owner": owner}) as third:
        assert await third.read("note") == b"still here"


@pytest.mark.slow
async def test_two_conversations_share_an_open_container_and_its_next_helper(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, labels={"owner": owner}) as workspace:
        await share(workspace)


async def test_all_that_is_made_for_a_conversation_has_its_labels(docker_image: str, owner: str) -> None:
    async with (
        Conversation(
            Agent(llm=ScriptedLLM([])),
            DockerWorkspace(docker_image, labels={"owner": owner}),
            id="labelled",
            store=MemoryStore(),
        ),
        open_engine() as engine,
    ):
        (container,) = await engine.list_containers([f"{names.OWNER}={owner}"])
        volumes = [each for each in await engine.list_volumes() if each["Labels"].get(names.OWNER) == owner]
    for each in (container, *volumes):
        labels = each["Labels"]
        assert (labels[names.CONVERSATION], labels[names.EPOCH]) == ("labelled", "1")
        assert names.expiry_of(labels) is not None
    assert len(volumes) == 2


@pytest.mark.slow
async def test_a_later_opening_of_a_conversation_takes_its_container_over(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, keep=True, labels={"owner": owner}) as earlier:
        box = str(earlier.record().params["box"])
        async with DockerWorkspace(docker_image, box=box, labels={"owner": owner}) as later:
            await take_over(earlier, later)


@pytest.mark.slow
async def test_a_log_goes_back_to_the_box_of_this_user(docker_image: str, docker_boxes_are_mine: str) -> None:
    async with DockerWorkspace(docker_image, keep=True, labels={"conversation": docker_boxes_are_mine}) as workspace:
        await workspace.write("note", "still here")
        spec: Any = WorkspaceSpec.model_validate_json(workspace.record().model_dump_json())
    again = DockerWorkspace.from_record(**spec.params)
    async with again:
        assert await again.read("note") == b"still here"
    async with open_engine() as engine:
        for part in ("own", "work"):
            await engine.remove_container(container_of(again))
            await engine.remove_volume(f"{container_of(again)}-{part}")
    with pytest.raises(WorkspaceLost, match="removed from outside") as lost:
        async with DockerWorkspace.from_record(**spec.params):
            pass
    assert lost.value.reason == "removed"


@pytest.fixture
async def docker_boxes_are_mine(docker_image: str) -> AsyncIterator[str]:
    """Return a conversation for boxes that this user owns; they are removed at the end."""
    conversation = f"tests {os.urandom(4).hex()}"
    yield conversation
    async with open_engine() as engine:
        for row in await engine.list_containers([names.BOX, f"{names.CONVERSATION}={conversation}"]):
            await engine.remove_container(str(row["Names"][0]).lstrip("/"))
        for row in await engine.list_volumes():
            if row["Labels"].get(names.CONVERSATION) == conversation:
                await engine.remove_volume(str(row["Name"]))


@pytest.mark.slow
async def test_a_log_cannot_loosen_what_a_box_may_do(
    docker_image: str, docker_boxes_are_mine: str, owner: str, folder: Path
) -> None:
    async with DockerWorkspace(docker_image, keep=True, labels={"conversation": docker_boxes_are_mine}) as workspace:
        params: Any = workspace.record().params
    async with DockerWorkspace(docker_image, labels={"owner": owner}) as other:
        theirs = other.record().params["box"]

        async def refusal(**changes: Any) -> str:
            with pytest.raises((WorkspaceError, ValueError)) as refused:
                async with DockerWorkspace.from_record(**{**params, **changes}):
                    pass
            return str(refused.value)

        # A box that is there is used as it was made.
        for change in (
            {"network": "full"},
            {"mount": str(folder)},
            {"user": "0:0"},
            {"memory": 1 << 40},
            {"pids": 9999},
        ):
            assert "was made with another" in await refusal(**change)
        assert "belongs to another owner" in await refusal(box=theirs)
        # A new one over the folder is made by the rules only.
        gone = {"box": "0" * 16, "mount": str(folder)}
        assert "network='full'" in await refusal(**gone, network="full")
        assert "user='0:0'" in await refusal(**gone, user="0:0")
        assert "may not be pulled" in await refusal(**gone, image="no-such-image:1", digest=None)
        assert "whole machine" in await refusal(**{**gone, "mount": "/"})
        assert "cpus=64.0" in await refusal(**gone, cpus=64)
        # As is one for a log that names no box at all.
        none = {"box": None, "mount": str(folder)}
        for change in ({"network": "full"}, {"user": "0:0"}, {"memory": 1 << 40}, {"pids": 9999}):
            assert "names no box" in await refusal(**none, **change)
        # It reads no folder, and names no owner.
        assert "has no 'copy'" in await refusal(box=None, copy=str(folder))
        assert "has no 'labels'" in await refusal(box=theirs, labels={"owner": owner})
        assert "not recorded" in await refusal(**gone, env=["TOKEN"])
        assert "not the id of a box" in await refusal(box="../images/x")


@pytest.mark.slow
async def test_where_a_box_is_gone_its_folder_gets_a_new_one_and_the_record_says_so(
    docker_image: str, owner: str, folder: Path
) -> None:
    async with DockerWorkspace(docker_image, mount=folder, labels={"owner": owner}) as workspace:
        await workspace.write("note", "in the folder")
        box = str(workspace.record().params["box"])
    async with DockerWorkspace(docker_image, mount=folder, box=box, labels={"owner": owner}) as again:
        assert await again.read("note") == b"in the folder"
        assert again.record().params["box"] != box
        assert any(f"The box agentcore-{box} is gone" in each for each in again.loosened)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        ({"image": "no-such-image:1", "pull": "never"}, "docker pull no-such-image:1"),
        ({"image": "no-such-image.invalid/x:1"}, "could not be pulled"),
        ({"runtime": "runsc"}, "runtime='runsc' is not known to this engine, which has"),
        ({"disk": "1g"}, "Leave disk= out"),
        ({"mount": "/etc"}, "project's folder"),
        ({"copy": "/no/such/folder"}, "is not a folder"),
        ({"box": "0" * 16}, "is lost: its container is gone"),
    ],
)
async def test_what_cannot_be_made_is_refused_and_nothing_is_left(
    docker_image: str, owner: str, arguments: dict[str, Any], instead: str
) -> None:
    image = arguments.pop("image", docker_image)
    with pytest.raises(WorkspaceError) as refused:
        async with DockerWorkspace(image, labels={"owner": owner}, **arguments):
            pass
    assert instead in str(refused.value)
    assert await left_behind(owner) == []


@pytest.fixture
async def poor_images(docker_image: str) -> AsyncIterator[dict[str, str]]:
    """Make an image without Python, and one without a shell."""
    import aiodocker  # noqa: PLC0415
    import aiohttp  # noqa: PLC0415

    made: dict[str, str] = {}
    library: Any = aiodocker  # its types are not whole
    async with aiohttp.UnixConnector(os.environ["DOCKER_HOST"].removeprefix("unix://")) as connector:
        async with library.Docker(url="http://localhost", connector=connector) as docker:
            command = ["sh", "-c", "mkdir /only; ln -s /bin/sh /bin/sleep /only/"]
            apart = {"NetworkMode": "none"}
            container = await docker.containers.create({"Image": docker_image, "Cmd": command, "HostConfig": apart})
            try:
                await container.start()
                await container.wait()
                for kind, path in (("shell", "/only"), ("nothing", "/none")):
                    made[kind] = f"poor-{os.urandom(4).hex()}:{kind}"
                    name, _, tag = made[kind].partition(":")
                    await container.commit(repository=name, tag=tag, changes=[f"ENV PATH={path}"])
            finally:
                await container.delete(force=True)
            yield made
            for image in made.values():
                await docker.images.delete(image, force=True)


@pytest.mark.slow
async def test_an_image_without_python_or_shell_is_refused_with_how_to_add_them(
    poor_images: dict[str, str], owner: str
) -> None:
    for kind, instead in (("shell", "apt-get install -y python3"), ("nothing", "choose an image with both")):
        with pytest.raises(WorkspaceError, match=instead):
            async with DockerWorkspace(poor_images[kind], labels={"owner": owner}):
                pass
        assert await left_behind(owner) == []


async def lose(workspace: DockerWorkspace, how: str) -> str:
    """Lose a box while a command runs; return the reason that the command's caller is told."""
    async with open_engine() as engine:
        with pytest.raises(WorkspaceLost) as lost:
            async with workspace.open_process("echo here; exec sleep 1000") as process:
                assert await process.receive() == b"here\n"
                if how == "helper":
                    await workspace.run("kill -9 $PPID")
                elif how == "removed":
                    await engine.remove_container(container_of(workspace))
                else:
                    await engine.stop_container(container_of(workspace))
                await process.wait()
    return lost.value.reason


@pytest.mark.slow
async def test_when_a_box_is_lost_the_reason_is_right(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, labels={"owner": owner}) as workspace:
        with anyio.fail_after(60):
            assert await lose(workspace, "helper") == "exited"
            assert (await workspace.run("echo again")).stdout == "again\n"
            assert await lose(workspace, "stopped") == "exited"
            with pytest.raises(WorkspaceLost) as lost:
                await workspace.run("true")
            assert lost.value.reason == "exited"
    async with DockerWorkspace(docker_image, labels={"owner": owner}) as workspace:
        with anyio.fail_after(60):
            assert await lose(workspace, "removed") == "removed"
            with pytest.raises(WorkspaceLost) as lost:
                await workspace.run("true")
            assert lost.value.reason == "removed"


@pytest.mark.slow
async def test_a_helper_that_runs_out_of_memory_says_so(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, labels={"owner": owner}, memory="64m") as workspace:
        with anyio.fail_after(60), pytest.raises(WorkspaceLost) as lost:
            # The helper itself writes it, into memory.
            await workspace.write("/tmp/large", bytes(100 << 20))
    assert lost.value.reason == "oom"


@pytest.mark.slow
async def test_what_nobody_uses_stops_by_itself_and_prune_removes_it(docker_image: str, owner: str) -> None:
    from agentcore_sandbox.docker import list_boxes, prune, read_logs  # noqa: PLC0415

    async with DockerWorkspace(docker_image, labels={"owner": owner}, idle_seconds=0.2) as used:
        left = DockerBox(
            make_options(image=docker_image, idle_seconds=0.2), command=BOOT_COMMAND, labels={"owner": owner}
        )
        await left.start(_ignore)
        name = left.spec.params["box"]
        await wait_until(f"agentcore-{name}", lambda found: not found["State"]["Running"])
        assert "nobody was here for 0.2 s" in await read_logs(str(name))
        boxes = {box.id: box for box in await list_boxes() if box.owner == owner}
        assert (boxes[str(name)].state, boxes[str(name)].in_use) == ("exited", False)
        with anyio.fail_after(30):
            while [box.id for box in await prune(owner=owner)] != [name]:
                await anyio.sleep(0.1)  # it expires by the whole second
        # Who is in there keeps it.
        assert await prune(owner=owner, expired_only=False) == ()
        assert (await used.run("echo here")).stdout == "here\n"
        await left.stop()


async def _ignore(progress: Progress) -> None:
    pass


@pytest.mark.slow
async def test_a_shell_is_opened_in_a_box(docker_image: str, owner: str) -> None:
    from agentcore_sandbox.docker import open_shell  # noqa: PLC0415

    async with DockerWorkspace(docker_image, labels={"owner": owner}) as workspace:
        with anyio.fail_after(30):
            async with open_shell(str(workspace.record().params["box"]), size=(91, 17)) as shell:
                await shell.stream.send(b"stty size; echo $((40 + 2)); exit 3\n")
                seen = b""
                with pytest.raises(anyio.EndOfStream):
                    while True:
                        seen += await shell.stream.receive()
                assert b"17 91\r\n42\r\n" in seen.replace(b"\x1b[?2004l\r", b"")
                assert await shell.exit_code() == 3
    with pytest.raises(WorkspaceError, match="agentcore sandbox list"):
        async with open_shell("0" * 16):
            pass
