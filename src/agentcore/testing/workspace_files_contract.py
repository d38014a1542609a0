"""The part of the contract of workspaces that is about files."""

from __future__ import annotations

import anyio

from agentcore.errors import PathError
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import Workspace

_ODD_NAMES = (
    "two words",
    "-rf",
    "a\nb",
    "'quoted' \"twice\"",
    "$HOME `id` *?[x]",
    "back\\slash",
    "\N{SNOWMAN} \N{LATIN SMALL LETTER E WITH ACUTE}",
    "tab\there",
    " ",
    "n" * 255,
)


class FilesContract:
    """The contract of files in all workspaces; a part of `WorkspaceContract`."""

    async def test_a_path_is_relative_to_the_root(self, workspace: Workspace) -> None:
        root = workspace.root
        assert root.startswith("/")
        assert workspace.resolve(".") == root
        assert workspace.resolve("a/./b/../c") == f"{root}/a/c"
        assert workspace.resolve("/etc//hosts") == "/etc/hosts"

    async def test_what_was_written_is_read(self, workspace: Workspace) -> None:
        data = bytes(range(256)) * 20_000
        await workspace.write("deep/er/bytes", data)
        assert await workspace.read("deep/er/bytes") == data
        await workspace.write("deep/er/bytes", "short \N{SNOWMAN}")
        assert await workspace.read(f"{workspace.root}/deep/er/bytes") == "short \N{SNOWMAN}".encode()
        await workspace.write("empty", b"")
        assert await workspace.read("empty") == b""
        assert (await workspace.run(["cat", "deep/er/bytes"])).stdout == "short \N{SNOWMAN}"

    async def test_appending_adds_to_the_end(self, workspace: Workspace) -> None:
        for number in range(3):
            await workspace.append("new/log", f"{number}\n")
        assert await workspace.read("new/log") == b"0\n1\n2\n"

    async def test_names_may_be_odd(self, workspace: Workspace) -> None:
        for name in _ODD_NAMES:
            await workspace.write(f"odd/{name}", name)
        assert [entry.name for entry in await workspace.list("odd")] == sorted(_ODD_NAMES)
        for name in _ODD_NAMES:
            assert await workspace.read(f"odd/{name}") == name.encode()
            entry = await workspace.stat(f"odd/{name}")
            assert entry is not None
            assert (entry.name, entry.kind, entry.size) == (name, "file", len(name.encode()))
        await refused(PathError, workspace.read("a\0b"))

    async def test_a_name_that_is_not_utf_8_is_shown(self, workspace: Workspace) -> None:
        await workspace.run(r"mkdir raw; cd raw; touch $'caf\351' plain")
        assert [entry.name for entry in await workspace.list("raw")] == [r"caf\xe9", "plain"]

    async def test_writing_keeps_the_mode_of_a_file(self, workspace: Workspace) -> None:
        await workspace.run("echo old >script; chmod 754 script; echo old >secret; chmod 600 secret")
        await workspace.write("script", "new")
        await workspace.write("secret", "new")
        shown = (
            await workspace.run("find . -name script -perm 754; find . -name secret -perm 600; cat script secret")
        ).stdout
        assert shown == "./script\n./secret\nnewnew"
        await workspace.write("fresh", "x")
        assert (
            await workspace.run("umask 022; touch made; [ ! -x fresh ] && [ -w fresh ] && echo plain")
        ).stdout == "plain\n"

    async def test_writing_through_a_link_keeps_the_link(self, workspace: Workspace) -> None:
        await workspace.run(
            "mkdir real; echo old >real/file; ln -s real/file link; ln -s link second; ln -s real/new dangling"
        )
        await workspace.write("second", "new")
        await workspace.write("dangling", "made")
        result = await workspace.run("readlink link second dangling; cat real/file real/new")
        assert result.stdout == "real/file\nlink\nreal/new\nnewmade"

    async def test_a_reader_sees_the_old_content_or_the_new(self, workspace: Workspace) -> None:
        contents = {letter * 300_000 for letter in (b"a", b"b")}
        await workspace.write("file", b"a" * 300_000)
        seen: set[bytes] = set()

        async def write() -> None:
            for _ in range(10):
                for content in sorted(contents):
                    await workspace.write("file", content)
            writing.cancel()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                with anyio.CancelScope() as writing:
                    while True:
                        seen.add(await workspace.read("file"))
        assert seen <= contents
        assert [entry.name for entry in await workspace.list()] == ["file"]

    async def test_what_cannot_be_read_or_written_is_said_in_a_word(self, workspace: Workspace) -> None:
        await workspace.run("mkdir folder; mkfifo pipe; echo text >file; ln -s loop loop")
        await workspace.write("big", b"x" * 1001)
        reasons = {
            "missing": "not/there",
            "is_a_folder": "folder",
            "not_a_folder": "file/below",
            "not_a_file": "pipe",
            "too_large": "big",
            "invalid": "loop",
        }
        with anyio.fail_after(30):
            for reason, path in reasons.items():
                error = await refused(PathError, workspace.read(path, max_bytes=1000))
                assert error.reason == reason, (error, reason)
                assert error.path in str(error)
            for path, reason in (("folder", "is_a_folder"), ("file/below", "not_a_folder"), ("pipe", "not_a_file")):
                assert (await refused(PathError, workspace.write(path, b"x"))).reason == reason
                assert (await refused(PathError, workspace.append(path, b"x"))).reason == reason
        assert await workspace.read("big", max_bytes=1001) == b"x" * 1001

    async def test_a_listing_tells_kinds_and_sizes_in_the_order_of_names(self, workspace: Workspace) -> None:
        await workspace.run(
            "mkdir b-dir; printf 12345 >a-file; ln -s a-file c-link; ln -s gone d-dangling; mkfifo e-pipe; touch -d '2020-02-03 04:05:06 UTC' a-file"
        )
        entries = await workspace.list()
        assert [(entry.name, entry.kind) for entry in entries] == [
            ("a-file", "file"),
            ("b-dir", "dir"),
            ("c-link", "link"),
            ("d-dangling", "link"),
            ("e-pipe", "other"),
        ]
        assert entries[0].size == 5
        assert entries[0].modified.isoformat() == "2020-02-03T04:05:06+00:00"
        assert (await refused(PathError, workspace.list("gone"))).reason == "missing"
        assert (await refused(PathError, workspace.list("a-file"))).reason == "not_a_folder"

    async def test_looking_at_a_path_follows_links(self, workspace: Workspace) -> None:
        await workspace.run("mkdir dir; printf 12345 >file; ln -s file link; ln -s gone dangling")
        kinds = {path: await workspace.stat(path) for path in ("dir", "file", "link", "dangling", "gone", "file/below")}
        assert {path: entry and (entry.kind, entry.name) for path, entry in kinds.items()} == {
            "dir": ("dir", "dir"),
            "file": ("file", "file"),
            "link": ("file", "link"),
            "dangling": None,
            "gone": None,
            "file/below": None,
        }

    async def test_a_file_travels_there_and_back(self, workspace: Workspace) -> None:
        async with anyio.TemporaryDirectory() as name:
            here = anyio.Path(name)
            data = bytes(range(256)) * 10_000
            await (here / "out").write_bytes(data)
            await (here / "out").chmod(0o755)
            await workspace.upload(str(here / "out"), "in/side/it")
            assert await workspace.read("in/side/it") == data
            assert (await workspace.run("[ -x in/side/it ] && echo executable")).stdout == "executable\n"
            await workspace.download("in/side/it", str(here / "new" / "back"))
            assert await (here / "new" / "back").read_bytes() == data
            assert (await refused(PathError, workspace.upload(str(here / "gone"), "x"))).reason == "missing"
            assert (await refused(PathError, workspace.download("gone", str(here / "x")))).reason == "missing"

    async def test_a_folder_travels_there_and_back(self, workspace: Workspace) -> None:
        async with anyio.TemporaryDirectory() as name:
            here = anyio.Path(name)
            await (here / "tree" / "sub" / "empty").mkdir(parents=True)
            await (here / "tree" / "sub" / "two words\n").write_bytes(b"\0\xff")
            await (here / "tree" / "link").symlink_to("sub/two words\n")
            await (here / "tree" / "away").symlink_to("/nowhere")
            await workspace.write("there/kept", "kept")
            await workspace.upload(str(here / "tree"), "there")
            names = [entry.name for entry in await workspace.list("there")]
            assert names == ["away", "kept", "link", "sub"]
            assert await workspace.read("there/link") == b"\0\xff"
            await workspace.download("there", str(here / "back"))
            assert await (here / "back" / "sub" / "two words\n").read_bytes() == b"\0\xff"
            assert await (here / "back" / "sub" / "empty").is_dir()
            assert str(await (here / "back" / "away").readlink()) == "/nowhere"
            assert await (here / "back" / "kept").read_text() == "kept"

    async def test_nothing_is_downloaded_through_a_link_that_came_before(self, workspace: Workspace) -> None:
        async with anyio.TemporaryDirectory() as name:
            here = anyio.Path(name)
            await (here / "outside").mkdir()
            await (here / "outside" / "file").write_text("mine")
            await workspace.run(["mkdir", "tree"])
            await workspace.run(["ln", "-s", str(here / "outside" / "file"), "tree/file"])
            await workspace.run(["ln", "-s", str(here / "outside" / "new"), "tree/new"])
            await workspace.download("tree", str(here / "back"))
            await workspace.run("rm tree/*; echo theirs | tee tree/file >tree/new")
            await workspace.download("tree", str(here / "back"))
            for each in ("file", "new"):
                assert not await (here / "back" / each).is_symlink()
                assert await (here / "back" / each).read_text() == "theirs\n"
            # One file, and a folder.
            await (here / "alone").symlink_to("outside/file")
            await workspace.download("tree/file", str(here / "alone"))
            assert not await (here / "alone").is_symlink()
            await workspace.run(["ln", "-s", str(here / "outside"), "tree/sub"])
            await workspace.download("tree", str(here / "back"))
            await workspace.run("rm tree/sub; mkdir tree/sub; echo theirs >tree/sub/file")
            error = await refused(PathError, workspace.download("tree", str(here / "back")))
            assert error.reason == "invalid"
            assert "is a link" in str(error)
            assert [each.name async for each in (here / "outside").iterdir()] == ["file"]
            assert await (here / "outside" / "file").read_text() == "mine"

    async def test_a_private_folder_is_outside_and_the_same_each_time(self, workspace: Workspace) -> None:
        folder = await workspace.private_folder("outputs")
        try:
            assert folder == await workspace.private_folder("outputs")
            assert not f"{folder}/".startswith(f"{workspace.root}/")
            assert (await workspace.run(["find", folder, "-maxdepth", "0", "-perm", "700"])).stdout == f"{folder}\n"
            await workspace.write(f"{folder}/whole.txt", "all of it")
            assert (await workspace.run(["cat", f"{folder}/whole.txt"])).stdout == "all of it"
            assert await workspace.list() == ()
            for name in ("../up", "", "a/b", ".hidden"):
                await refused(PathError, workspace.private_folder(name))
        finally:
            with anyio.move_on_after(30, shield=True):
                await workspace.remove_private_folder("outputs")
        assert await workspace.stat(folder) is None
        await workspace.remove_private_folder("outputs")
