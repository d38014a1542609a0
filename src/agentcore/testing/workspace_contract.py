"""The contract of every workspace, as tests: subclass it where your workspace is tested."""

from __future__ import annotations

import tracemalloc
from unittest import SkipTest

import anyio

from agentcore.errors import NotARepository, PathError, WorkspaceError
from agentcore.testing.workspace_files_contract import FilesContract
from agentcore.testing.workspace_process_contract import ProcessContract, refused, still_alive, wait_for_lines
from agentcore.workspace import Workspace

# Nothing of the user's own settings.
_ENV = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
_NOTHING = ()


async def _need_git(workspace: Workspace) -> None:
    if (await workspace.run("command -v git")).exit_code != 0:
        raise SkipTest("needs git where the workspace runs its commands: install git")


async def _do(workspace: Workspace, script: str) -> None:
    await _need_git(workspace)
    result = await workspace.run(f"set -e; {script}", env=_ENV)
    assert result.exit_code == 0, result.stderr


async def _changes(workspace: Workspace) -> list[tuple[str, str, str | None]]:
    return sorted((change.status, change.path, change.old_path) for change in await workspace.git_changes())


class GitContract:
    """The contract of git in all workspaces; a part of `WorkspaceContract`."""

    async def test_changes_are_those_since_the_work_left_the_default_branch(self, workspace: Workspace) -> None:
        await _do(
            workspace,
            """
            git init -q -b main
            seq 100 >moves; seq 50 >goes; seq 60 >changes; echo same >stays; echo ignored >.gitignore
            git add . && git commit -qm one
            git switch -qc work
            echo more >>changes; git commit -qam two
            git switch -q main; echo elsewhere >other; git add other; git commit -qm three; git switch -q work
            """,
        )
        assert await _changes(workspace) == [("updated", "changes", None)]
        await _do(
            workspace,
            """
            mkdir sub; mv moves sub/moved; rm goes; echo staged >staged; git add staged
            echo new >'not yet
known'; echo x >ignored; echo again >>changes
            """,
        )
        assert await _changes(workspace) == [
            ("added", "not yet\nknown", None),
            ("added", "staged", None),
            ("deleted", "goes", None),
            ("moved", "sub/moved", "moves"),
            ("updated", "changes", None),
        ]

    async def test_a_diff_shows_what_changed_and_what_is_new(self, workspace: Workspace) -> None:
        await _do(
            workspace,
            "git init -q -b main; printf 'one\\ntwo\\n' >file; git add .; git commit -qm one;"
            "printf 'one\\n2\\n' >file; printf 'x\\0y' >binary; echo hello >'new file'; git config diff.noprefix true",
        )
        diff = await workspace.git_diff()
        assert "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" in diff
        assert "--- /dev/null\n+++ b/new file" in diff
        assert "+hello\n" in diff
        assert "Binary files /dev/null and b/binary differ\n" in diff
        only = await workspace.git_diff("new file")
        assert "+hello\n" in only
        assert "+2\n" not in only
        assert await workspace.git_diff(f"{workspace.root}/new file") == only
        assert await workspace.git_diff("n*") == ""

    async def test_a_change_within_the_second_of_a_commit_is_seen(self, workspace: Workspace) -> None:
        # As it looks when all of it happens at once: the same size, and no time of anything tells the two apart.
        await _do(
            workspace,
            """
            git init -q; git config core.trustctime false
            echo a >file; touch -d 2020-02-03 file; git add .; git commit -qm one
            echo b >file; touch -d 2020-02-03 file .git/index
            """,
        )
        assert await _changes(workspace) == [("updated", "file", None)]

    async def test_telling_changes_changes_nothing(self, workspace: Workspace) -> None:
        await _do(workspace, "git init -q; echo a >file; git add .; git commit -qm one; echo b >new")
        read_processes = "find .git -type f -printf '%p %s %T@\\n' | sort; git status --porcelain"
        before = (await workspace.run(read_processes, env={"GIT_OPTIONAL_LOCKS": "0"})).stdout
        assert await _changes(workspace) == [("added", "new", None)]
        assert await workspace.git_diff() != ""
        assert (await workspace.run(read_processes, env={"GIT_OPTIONAL_LOCKS": "0"})).stdout == before

    async def test_the_default_branch_of_the_origin_is_known(self, workspace: Workspace) -> None:
        await _do(
            workspace,
            """
            git init -q -b trunk origin; (cd origin; echo a >file; git add .; git commit -qm one)
            mkdir project; mv origin project/..origin; git clone -q project/..origin clone
            mv clone/.git clone/file .; rm -rf project clone; git switch -qc work; echo b >file; git commit -qam two
            """,
        )
        assert await _changes(workspace) == [("updated", "file", None)]

    async def test_before_the_first_commit_everything_is_new(self, workspace: Workspace) -> None:
        await _do(workspace, "git init -q")
        assert await workspace.git_changes() == _NOTHING
        assert await workspace.git_diff() == ""
        await _do(workspace, "echo a >file; echo b >staged; git add staged")
        assert await _changes(workspace) == [("added", "file", None), ("added", "staged", None)]
        assert "+a\n" in await workspace.git_diff()

    async def test_repositories_inside_do_not_hide_the_rest(self, workspace: Workspace) -> None:
        await _do(
            workspace,
            """
            git init -q; echo a >file; git add .; git commit -qm one; echo b >file; echo new >zzz
            git init -q empty; git init -q full; (cd full; echo x >x; git add .; git commit -qm inside)
            """,
        )
        changes = await _changes(workspace)
        assert ("updated", "file", None) in changes
        assert ("added", "zzz", None) in changes

    async def test_no_program_that_the_repository_names_is_run(self, workspace: Workspace) -> None:
        await _do(
            workspace,
            r"""
            git init -q -b main
            echo '* filter=a diff=b' >.gitattributes; echo one >changed; echo one >same
            git init -q sub; (cd sub; echo x >x; git add .; git commit -qm inside)
            git add . 2>/dev/null; git commit -qm one
            trap_in() { printf '#!/bin/sh\ntouch "%s/ran-%s"\ncat\n' "$PWD/.git" "$1" >.git/"$1"; chmod +x .git/"$1"; }
            for each in fsmonitor clean process external textconv; do trap_in $each; done
            trap_in post-index-change; mkdir -p .git/hooks; mv .git/post-index-change .git/hooks
            git config core.fsmonitor "$PWD/.git/fsmonitor"
            printf '[filter "a"]\nclean = "%s/clean"\nrequired\n' "$PWD/.git" >.git/more; git config include.path more
            git config diff.b.command "$PWD/.git/external"; git config diff.b.textconv "$PWD/.git/textconv"
            git config diff.external "$PWD/.git/external"
            git -C sub config core.fsmonitor "$PWD/.git/fsmonitor"; git -C sub config filter.a.clean "$PWD/.git/clean"
            echo '* filter=a' >sub/.gitattributes; echo y >sub/x
            echo two >changed; touch same; echo new >new
            """,
        )
        assert await _changes(workspace) == [("added", "new", None), ("updated", "changed", None)]
        assert "-one\n+two\n" in await workspace.git_diff()
        assert (await workspace.run("ls .git | grep ran-")).stdout == ""

    async def test_a_folder_without_git_is_an_error_that_says_so(self, workspace: Workspace) -> None:
        await _need_git(workspace)
        assert workspace.root in str(await refused(NotARepository, workspace.git_changes()))
        await refused(NotARepository, workspace.git_diff())


class WorkspaceContract(ProcessContract, FilesContract, GitContract):
    """The behaviour that all workspaces share, as async tests for pytest with anyio's plugin (`anyio_mode = "auto"`).

    A subclass has a fixture `workspace` that gives one that is entered and whose root is an empty folder outside of any
    repository. What runs there needs bash, the usual small programs (cat, sleep, seq, stty, setsid) and git.

        class TestMyWorkspace(WorkspaceContract):
            @pytest.fixture
            async def workspace(self):
                async with MyWorkspace() as workspace:
                    yield workspace
    """

    async def test_entering_an_entered_workspace_is_an_error(self, workspace: Workspace) -> None:
        assert workspace.is_open
        try:
            await workspace.__aenter__()
        except WorkspaceError:
            pass
        else:
            raise AssertionError("it could be entered twice")
        assert workspace.is_open
        assert (await workspace.run("echo fine")).stdout == "fine\n"

    async def test_a_command_gives_its_exit_code_and_both_streams(self, workspace: Workspace) -> None:
        result = await workspace.run("echo out; echo err >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
        assert not result.truncated

    async def test_text_is_read_by_bash_and_a_sequence_by_no_shell(self, workspace: Workspace) -> None:
        assert (await workspace.run("a=(x y); [[ ${a[1]} == y ]] && echo ${#a[@]}")).stdout == "2\n"
        result = await workspace.run(["printf", "<%s>", "a  b", "$HOME", "*", "", "'\n\""])
        assert result.stdout == "<a  b><$HOME><*><><'\n\">"

    async def test_a_program_that_is_not_there_is_exit_code_127(self, workspace: Workspace) -> None:
        for command in (["no-such-program", "--help"], "no-such-program --help"):
            result = await workspace.run(command)
            assert result.exit_code == 127
            assert "no-such-program" in result.stderr

    async def test_a_signal_that_ends_a_command_is_told_as_a_shell_tells_it(self, workspace: Workspace) -> None:
        assert (await workspace.run("kill -KILL $$")).exit_code == 128 + 9
        assert (await workspace.run("kill -TERM $$")).exit_code == 128 + 15

    async def test_a_command_reads_what_it_is_given_and_then_the_end(self, workspace: Workspace) -> None:
        data = bytes(range(256)) * 4096
        with anyio.fail_after(30):
            assert (await workspace.run("cat", stdin=data)).out.head == data
            assert (await workspace.run("cat; echo done")).stdout == "done\n"

    async def test_a_command_need_not_read_what_it_is_given(self, workspace: Workspace) -> None:
        with anyio.fail_after(30):
            assert (await workspace.run("head -c 3", stdin=b"abcdef" * 200_000)).stdout == "abc"
            assert (await workspace.run("exec 0<&-; exit 4", stdin=b"abcdef" * 200_000)).exit_code == 4

    async def test_output_may_be_any_bytes(self, workspace: Workspace) -> None:
        result = await workspace.run(r"printf '\0\377\200a\303\244\n'")
        assert result.out.head == b"\0\xff\x80a\xc3\xa4\n"
        assert (
            result.stdout
            == "\0\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}a\N{LATIN SMALL LETTER A WITH DIAERESIS}\n"
        )

    async def test_of_ten_megabytes_the_beginning_and_the_end_are_kept_in_bounded_memory(
        self, workspace: Workspace
    ) -> None:
        limit = 100_000
        await workspace.run("true")
        tracemalloc.start()
        try:
            result = await workspace.run("seq 1500000; seq 1500000 >&2; exit 7", max_output=limit)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert result.exit_code == 7
        assert result.truncated
        for output in (result.out, result.err):
            assert output.size == 10_888_896
            assert output.omitted == output.size - limit
            assert output.head.startswith(b"1\n2\n3\n")
            assert output.tail.endswith(b"1499999\n1500000\n")
            assert output.text.startswith("1\n2\n3\n")
            assert f"{output.omitted} bytes omitted" in output.text
        assert peak < 4_000_000

    async def test_a_command_runs_in_the_folder_and_with_the_variables_it_is_given(self, workspace: Workspace) -> None:
        await workspace.run("mkdir -p 'in here/deep'")
        assert (await workspace.run("pwd -P")).stdout == f"{workspace.root}\n"
        assert (await workspace.run("pwd -P", cwd="in here")).stdout == f"{workspace.root}/in here\n"
        assert (await workspace.run("pwd -P", cwd=f"{workspace.root}/in here/deep")).stdout.endswith("/deep\n")
        value = "two words\n'$HOME' \N{SNOWMAN}"
        assert (await workspace.run('printf %s "$GIVEN"', env={"GIVEN": value})).stdout == value
        assert (await workspace.run('printf %s "${GIVEN-unset}"')).stdout == "unset"

    async def test_a_folder_that_is_not_there_is_an_error_and_not_an_exit_code(self, workspace: Workspace) -> None:
        error = await refused(PathError, workspace.run("true", cwd="not/there"))
        assert error.reason == "missing"
        assert "not/there" in str(error)

    async def test_a_command_may_be_longer_than_an_argument_can_be(self, workspace: Workspace) -> None:
        lines = "".join(f"line {number:06}\n" for number in range(25_000))
        result = await workspace.run(f"cat >long.txt <<'END'\n{lines}END\necho \"$0 $#\"; exit 5\n")
        assert (result.exit_code, result.stderr) == (5, "")
        assert await workspace.read("long.txt") == lines.encode()

    async def test_twenty_commands_run_at_once(self, workspace: Workspace) -> None:
        # None of them ends before all of them have begun.
        meet = "touch here.$N; until [ $(ls here.* | wc -l) -eq 20 ]; do sleep 0.05; done; echo $N"
        answers: dict[int, str] = {}

        async def one(number: int) -> None:
            answers[number] = (await workspace.run(meet, env={"N": str(number)})).stdout

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(one, number)
        assert answers == {number: f"{number}\n" for number in range(20)}

    async def test_what_a_command_leaves_running_is_ended_with_it(self, workspace: Workspace) -> None:
        leaving = """
            sleep 1000 &
            echo $! >>pids
            setsid bash -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 </dev/null &
            (setsid bash -c '(echo $BASHPID >>pids; trap "" TERM HUP; while :; do sleep 0.1; done) &' &)
            until [ "$(wc -l <pids)" -eq 3 ]; do sleep 0.02; done
            echo main is done
        """
        with anyio.fail_after(30):
            result = await workspace.run(leaving)
        assert (result.exit_code, result.stdout) == (0, "main is done\n")
        assert await still_alive(workspace, await wait_for_lines(workspace, "pids", 3)) == []

    async def test_cancelling_kills_the_command_with_all_its_descendants(self, workspace: Workspace) -> None:
        # In its group, in a session of its own, forked twice, and one that also threw its environment away.
        command = """
            trap '' TERM
            echo $$ >>pids
            bash -c 'echo $$ >>pids; exec sleep 1000' &
            setsid bash -c 'echo $$ >>pids; exec sleep 1000' &
            (setsid bash -c '(echo $BASHPID >>pids; trap "" TERM; while :; do sleep 0.1; done) &' >/dev/null 2>&1 &)
            env -i "$(command -v setsid)" "$(command -v bash)" -c 'echo $$ >>pids; while :; do sleep 0.1; done' &
            while :; do sleep 0.1; done
        """
        pids: list[str] = []
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workspace.run, command)
                pids = await wait_for_lines(workspace, "pids", 5)
                assert sorted(await still_alive(workspace, pids)) == sorted(pids)
                tasks.cancel_scope.cancel()
        assert await still_alive(workspace, pids) == []

    async def test_a_time_limit_is_the_callers(self, workspace: Workspace) -> None:
        # Long enough to have begun, where starting takes its time; so the file is waited for, and only then the limit set.
        pids: list[str] = []
        with anyio.fail_after(30):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(workspace.run, "echo $$ >pid; exec sleep 1000")
                    pids = await wait_for_lines(workspace, "pid", 1)
                    scope.deadline = anyio.current_time()
            assert scope.cancelled_caught
        assert await still_alive(workspace, pids) == []
