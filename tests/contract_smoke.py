"""A few tests of the contract of workspaces: quick where the whole contract is slow."""

from __future__ import annotations

from agentcore.testing.workspace_contract import WorkspaceContract

__all__ = ["SmokeContract"]


class SmokeContract:
    """One test of each group of the contract, for the places that run the whole of it in slow tests only."""

    test_a_command_gives_its_exit_code_and_both_streams = (
        WorkspaceContract.test_a_command_gives_its_exit_code_and_both_streams
    )
    test_a_folder_travels_there_and_back = WorkspaceContract.test_a_folder_travels_there_and_back
    test_a_diff_shows_what_changed_and_what_is_new = WorkspaceContract.test_a_diff_shows_what_changed_and_what_is_new
    test_a_process_is_talked_to_through_its_pipes = WorkspaceContract.test_a_process_is_talked_to_through_its_pipes
    test_ctrl_c_reaches_the_foreground_and_not_the_shell = (
        WorkspaceContract.test_ctrl_c_reaches_the_foreground_and_not_the_shell
    )
    test_what_a_command_leaves_running_is_ended_with_it = (
        WorkspaceContract.test_what_a_command_leaves_running_is_ended_with_it
    )
