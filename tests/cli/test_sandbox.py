"""`--sandbox` and `agentcore rewind --files`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agentcore.cli.sandbox import PullProgress
from agentcore.testing import call
from agentcore.workspace import register_workspace
from agentcore_sandbox.box import Progress
from agentcore_sandbox.bubblewrap.workspace import restore
from boxes_bubblewrap import needs_bubblewrap
from boxes_docker import needs_docker

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

register_workspace("bubblewrap", restore)  # an entry point does that where this version is installed


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--network", "none"], "--network is about a sandbox. Add --sandbox docker or --sandbox bubblewrap."),
        (["--sandbox-image", "x"], "--sandbox-image is about a sandbox. Add --sandbox docker."),
        (["--sandbox", "bubblewrap", "--sandbox-image", "x"], "--sandbox-image is about Docker"),
        (
            ["--sandbox", "bubblewrap", "--network", "allow:http://example.org"],
            "--network: 'http://example.org' is a URL.",
        ),
        (["--sandbox", "docker", "--network", "host"], "--network is none, full or allow:HOST,HOST"),
        (["--sandbox", "docker", "--network", "allow:"], "--network: Allow() names no host"),
        (
            ["--sandbox", "docker", "--sandbox-image", "../x"],
            "--sandbox-image: '../x' is not the name of an image: write it as in --sandbox-image python:3.12-slim.",
        ),
    ],
)
def test_what_does_not_go_together_is_one_sentence_and_nothing_is_made(
    cli: Cli, flags: list[str], sentence: str
) -> None:
    ended = cli.play("never", flags=flags)
    assert (ended.code, sentence in ended.err) == (2, True), ended.err
    assert cli.ids() == []


@needs_bubblewrap
def test_a_run_in_bubblewrap_reaches_nothing_outside_and_is_resumed_there(cli: Cli) -> None:
    outside = cli.project.parent / "outside"
    outside.write_text("secret")
    lines = [call("terminal", command=f"cat {outside}; echo inside > made; echo $?"), "Done."]
    ended = cli.play(*lines, flags=["--sandbox", "bubblewrap"])
    assert ended.code == 0, ended.err
    (answer,) = [event for event in cli.events() if event["kind"] == "observation"]
    assert "No such file" in str(answer["content"])
    assert (cli.project / "made").read_text() == "inside\n"
    (opened,) = [event for event in cli.events() if event["kind"] == "workspace_opened"]
    assert opened["workspace"] == "bubblewrap"
    with cli.serve(call("terminal", command="cat made"), "Again.") as provider:
        resumed = cli.run("resume", cli.ids()[0], "and now", "--base-url", provider.base_url)
    assert resumed.code == 0, resumed.err
    assert "(bubblewrap)" in ended.out.splitlines()[0]
    assert "(bubblewrap)" in resumed.out
    assert f"workspace bubblewrap {cli.project}" in cli.run("log", "show", cli.ids()[0]).out
    assert len([event for event in cli.events() if event["kind"] == "workspace_opened"]) == 1


@needs_bubblewrap
def test_a_network_and_another_folder_are_asked_for_again_when_it_is_resumed(cli: Cli) -> None:
    ended = cli.play("Done.", flags=["--sandbox", "bubblewrap", "--network", "full"])
    assert ended.code == 0, ended.err
    again = ("resume", cli.ids()[0], "and now")
    with cli.serve("Again.") as provider:
        url = ("--base-url", provider.base_url)
        refused = cli.run(*again, *url)
        assert (refused.code, "Ask for its sandbox again: --sandbox" in refused.err) == (1, True), refused.err
        assert "BubblewrapWorkspace" not in refused.err
        elsewhere = cli.run(*again, *url, "--workspace", str(cli.project))
        assert (elsewhere.code, "works in a sandbox" in elsewhere.err) == (2, True), elsewhere.err
        resumed = cli.run(*again, *url, "--sandbox", "bubblewrap", "--network", "full")
    assert resumed.code == 0, resumed.err
    assert "Again." in resumed.out


@needs_bubblewrap
def test_condense_opens_the_sandbox_of_the_log_and_no_folder_without_one(cli: Cli) -> None:
    with cli.serve(
        *[call("terminal", command=f"seq 5000; echo {n}") for n in range(4)], "Done.", "A summary."
    ) as provider:
        cli.run("run", "go", "--model", "mine", "--base-url", provider.base_url, "--sandbox", "bubblewrap")
        refused = cli.run("condense", "--workspace", str(cli.project))
        assert (refused.code, "works in a sandbox" in refused.err) == (2, True), refused.err
        ended = cli.run("condense")
    assert ended.code == 0, ended.err
    assert f"{cli.project} (bubblewrap)" in ended.out.splitlines()[0]
    kinds = [event["kind"] for event in cli.events()]
    assert (kinds.count("condensation"), kinds.count("workspace_opened")) == (1, 1)


@needs_docker
@pytest.mark.skipif(os.geteuid() != 0, reason="the folder has to belong to root")
def test_a_folder_of_root_s_is_refused_in_the_words_of_the_command_line(cli: Cli) -> None:
    env = {"DOCKER_HOST": os.environ["DOCKER_HOST"]}
    ended = cli.play("never", flags=["--sandbox", "docker", "--sandbox-image", os.environ["TEST_IMAGE"]], env=env)
    assert ended.code == 1
    assert f"The folder '{cli.project}' belongs to root" in ended.err
    assert f"(`chown -R 1000:1000 {cli.project}`), or use --sandbox bubblewrap." in ended.err
    assert "mount=" not in ended.err
    guarded = cli.play("never", flags=["-w", "/etc", "--sandbox", "docker"], env=env)
    assert "The folder '/etc' is refused" in guarded.err
    assert "Name the project's folder alone with --workspace." in guarded.err


@needs_docker
def test_a_run_in_docker_end_to_end(cli: Cli) -> None:
    lines = [call("terminal", command="id -u; echo inside > made"), "Done."]
    env = {"DOCKER_HOST": os.environ["DOCKER_HOST"]}
    os.chown(cli.project, 1000, 1000)
    ended = cli.play(*lines, flags=["--sandbox", "docker", "--sandbox-image", os.environ["TEST_IMAGE"]], env=env)
    assert ended.code == 0, ended.err
    (opened,) = [event for event in cli.events() if event["kind"] == "workspace_opened"]
    assert (opened["workspace"], opened["spec"]["mount"]) == ("docker", str(cli.project))
    assert opened["spec"]["digest"].startswith("sha256:")
    assert (cli.project / "made").read_text() == "inside\n"
    listed = cli.run("sandbox", "list", env=env)
    assert listed.code == 0, listed.err
    assert cli.ids()[0] not in listed.out  # it was removed with the run
    assert f"{cli.project} (docker)" in ended.out.splitlines()[0]


@needs_docker
@pytest.mark.parametrize("box", ["abcdefgh", "../x"])
def test_a_box_that_is_not_there_is_one_sentence(cli: Cli, box: str) -> None:
    ended = cli.run("sandbox", "logs", box, env={"DOCKER_HOST": os.environ["DOCKER_HOST"]})
    assert (ended.code, "`agentcore sandbox list` shows" in ended.err) == (1, True), ended.err


async def test_pulling_an_image_is_shown_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    progress = PullProgress("image:1")
    for done in range(100):
        await progress.show(Progress(phase="pull", done=done * 1_000_000, total=99_000_000))
    await progress.show(Progress(phase="ready"))
    assert capsys.readouterr().err == "pulling the image image:1 ...\n"


@pytest.mark.slow
def test_rewind_brings_the_files_back_and_names_the_way_to_those_before(cli: Cli) -> None:
    (cli.project / "a").write_text("1")
    with cli.serve(call("terminal", command="printf 2 > a"), "Done.") as provider:
        cli.run("run", "go", "--model", "mine", "--base-url", provider.base_url, "--checkpoints")
    changed = (cli.project / "a").read_text()
    first = next(event["seq"] for event in cli.events() if event["kind"] == "workspace_checkpointed")
    ended = cli.run("rewind", cli.ids()[0], "--to", str(first), "--files")
    assert ended.code == 0, ended.err
    assert changed.strip() == "2"
    assert (cli.project / "a").read_text() == "1"
    assert "1 file written, 0 removed" in ended.out
    again = next(line for line in ended.out.splitlines() if "to have the files from before back" in line)
    back = again.split("rewind ", 1)[1].split()
    assert cli.run("rewind", *back).code == 0
    assert (cli.project / "a").read_text() == changed
    refused = cli.run("rewind", cli.ids()[0], "--to", "0", "--files")
    assert (refused.code, "no checkpoint of them was made" in refused.err) == (2, True), refused.err
