"""The table of escape attempts in the reference is that of the tests. AGENTCORE_WRITE_DOCS=1 writes it anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import boxes_escapes as escapes
from boxes_harm import HARMS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "escapes.md"
BEGIN, END = "<!-- table: written by tests/docs/test_escapes.py -->\n", "<!-- end of the table -->\n"

STOPPED = {
    "FILES": "nothing of the machine is mounted but the project and the system's programs, read-only; the root is read-only",
    "KERNEL_FILES": "`/proc` and `/sys` are read-only, hidden or missing; no devices; no capabilities",
    "NAMESPACES": "the filter of system calls, no capabilities; in bubblewrap also `--disable-userns`",
    "CALLS": "the filter of system calls, no capabilities",
    "RIGHTS": "no new privileges, no capabilities, process ids of its own, limits",
    "HELPER": "the helper cannot be read, traced or written to by commands, and they have none of its files",
    "NETWORK": "a network of its own, which has nothing but loopback",
}

SANDBOX = Path(__file__).parents[1] / "sandbox"
ELSEWHERE = (
    ("CONNECT to an address", "only allowed names are connected to", "test_proxy", "test_addresses_other_names_and_other_ports_are_refused"),
    ("an allowed name that leads to a private address", "each address is judged outside", "test_proxy", "test_an_allowed_name_that_leads_to_a_private_address_is_refused"),
    ("another answer for the same name (rebinding)", "the address that was judged is the one that is used", "test_proxy", "test_a_name_is_looked_up_once_for_each_connection_and_that_answer_is_used"),
    ("a redirect to another host", "it is a request of its own", "test_proxy", "test_a_redirect_comes_back_as_a_request_that_is_decided_by_itself"),
    ("another host in the Host header", "it is compared with the target", "test_proxy", "test_a_host_header_that_names_another_host_is_refused"),
    ("another server in TLS", "its first message is read", "test_proxy_tls", "test_tls_that_names_another_server_is_refused_within_the_tunnel"),
    ("a target that could be read in two ways", "it is refused", "test_proxy", "test_a_target_that_could_be_read_in_two_ways_is_refused"),
    ("a private or metadata address through the proxy", "it is refused", "test_network_in_box", "test_addresses_and_names_of_private_ones_are_refused"),
    ("`..`, absolute names and links in what is downloaded", "a tree that leads elsewhere is refused, and nothing of it is left", "test_transfer", "test_a_tree_that_leads_elsewhere_is_refused_and_nothing_of_it_is_left"),
    ("a link that an earlier download brought", "no link is followed", "test_transfer", "test_a_link_that_an_earlier_download_brought_leads_nothing_elsewhere"),
    ("setuid files in what is downloaded", "special bits are dropped", "test_transfer", "test_special_bits_do_not_come_out"),
    ("frames that no helper sends", "the stream is ended", "test_hostile_helpers", "test_what_no_helper_says_ends_the_stream"),
    ("any bytes in the helper's place", "the stream is ended", "test_hostile_helpers", "test_whatever_comes_nothing_hangs_and_nothing_but_losing_the_box_happens"),
    ("more bytes than were allowed", "the stream is ended", "test_hostile_helpers", "test_a_flood_beyond_the_window_costs_no_more_memory_than_that"),
)  # fmt: skip
"""What is tried where it is decided, on this side of the stream, which is the same for each kind of box: attempt, answer, file, test."""


def table() -> Iterator[str]:
    """Return the lines of the table."""
    yield "| attempt | what stops it | in Docker |\n"
    yield "| --- | --- | --- |\n"
    for group, stopped in STOPPED.items():
        attempts: tuple[escapes.Attempt, ...] = getattr(escapes, group)
        for attempt in attempts:
            docker = "the same" if attempt.in_docker else "allowed by its profile, and no way out by itself"
            yield f"| {attempt.name} | {stopped} | {docker} |\n"
    for harm in HARMS:
        yield f"| {harm.name} | {harm.stopped} | the same |\n"
    for attempt, stopped, _, _ in ELSEWHERE:
        yield f"| {attempt} | {stopped} | the same |\n"


def test_the_reference_has_each_attempt() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    written, after = rest.split(END)
    wanted = "".join(table())
    if os.environ.get("AGENTCORE_WRITE_DOCS"):
        PAGE.write_text(f"{before}{BEGIN}\n{wanted}\n{END}{after}", encoding="utf-8")
        return
    assert written.strip() == wanted.strip(), "run this test with AGENTCORE_WRITE_DOCS=1"


def test_no_attempt_is_left_out() -> None:
    names = [attempt.name for group in STOPPED for attempt in getattr(escapes, group)]
    assert names == [attempt.name for attempt in (*escapes.ATTEMPTS, *escapes.NETWORK)]


@pytest.mark.parametrize("row", ELSEWHERE, ids=lambda row: row[0])
def test_what_is_tried_elsewhere_is_tried_there(row: tuple[str, str, str, str]) -> None:
    _, _, file, test = row
    assert f"def {test}(" in (SANDBOX / f"{file}.py").read_text(encoding="utf-8")
