"""The part of the contract of workspaces that is about git."""

from __future__ import annotations

from agentcore.errors import NotARepository
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import Workspace

__all__ = ["GitContract"]

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


async def _do(workspace: Workspace, script: str) -> None:
    result = await workspace.run(f"set -e; {script}", env=_ENV)
    assert result.exit_code == 0, result.stderr


async def _changes(workspace: Workspace) -> list[tuple[str, str, str | None]]:
    return sorted((change.status, change.path, change.old_path) for change in await workspace.git_changes())


class GitContract:
    """What git tells in all workspaces; a part of `WorkspaceContract`."""

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
        look = "find .git -type f -printf '%p %s %T@\\n' | sort; git status --porcelain"
        before = (await workspace.run(look, env={"GIT_OPTIONAL_LOCKS": "0"})).stdout
        assert await _changes(workspace) == [("added", "new", None)]
        assert await workspace.git_diff() != ""
        assert (await workspace.run(look, env={"GIT_OPTIONAL_LOCKS": "0"})).stdout == before

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

    async def test_a_folder_without_git_is_an_error_that_says_so(self, workspace: Workspace) -> None:
        assert workspace.root in str(await refused(NotARepository, workspace.git_changes()))
        await refused(NotARepository, workspace.git_diff())
