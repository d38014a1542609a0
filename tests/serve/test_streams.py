"""Streams over real servers: what a watcher is sent, from where, and how a stream ends."""

from __future__ import annotations

import anyio
import httpx
import httpx_ws
import pytest

from agentcore import Agent, Conversation
from agentcore.testing import ScriptedLLM, say
from agentcore.wire import AskFrame, Bye, DeltaFrame, EventFrame, Frame, Hello, Ping, parse_frames
from serving import SERVERS, ServerName, serve
from watching import GrowingLog, app_of, open_streams, read_socket, read_sse, texts_of, until_bye

KINDS = ("http", "ws")


def stream_url(kind: str, port: int) -> str:
    return f"http://127.0.0.1:{port}/sse" if kind == "http" else f"ws://127.0.0.1:{port}/ws"


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_watcher_gets_the_past_then_what_comes_without_gap_or_double(server: ServerName, kind: str) -> None:
    with anyio.fail_after(20):
        async with Conversation(Agent(llm=ScriptedLLM([say("Done.")]))) as conversation:
            await conversation.send("before")
            async with open_streams(conversation.link) as (_, served), serve(app_of(served), server) as serving:
                seen: list[object] = []

                async def watch() -> None:
                    seen.extend(await until_bye(stream_url(kind, serving.port), deltas=1))

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(watch)
                    while not len(served.streams):
                        await anyio.sleep(0.01)
                    for number in range(50):
                        await conversation.send(f"message {number}")
                    await conversation.run()
                    await conversation.close()
        frames = [frame for frame in seen if isinstance(frame, EventFrame)]
        hello, bye = seen[0], seen[-1]
        events = list(conversation.state.events)
        assert isinstance(hello, Hello)
        assert (hello.conversation, hello.birth) == (conversation.id, events[0].id)
        assert [frame.event for frame in frames] == events
        assert [frame.group for frame in frames] == [conversation.state.group_of(event.seq) for event in events]
        said = "".join(item.text for frame in seen if isinstance(frame, DeltaFrame) for item in frame.items)
        assert said == "Done."
        assert bye == Bye(code="closed")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cursor_continues_where_the_watcher_was(kind: str) -> None:
    log = GrowingLog()
    log.append("a", "b")
    log.append("c")
    log.close()
    birth = log.state.events[0].id
    with anyio.fail_after(30):
        async with open_streams(log) as (_, served), serve(app_of(served)) as serving:
            url = stream_url(kind, serving.port)
            assert texts_of(await until_bye(url)) == ["a", "b", "c"]
            assert texts_of(await until_bye(url, after=1)) == ["b", "c"]
            assert texts_of(await until_bye(url, after=2, birth=birth)) == ["c"]
            assert texts_of(await until_bye(url, after=f"{birth}:3")) == []
            # A browser repeats its first address, and says in the header how far it came.
            assert texts_of(await until_bye(url, after=0, headers={"Last-Event-ID": f"{birth}:2"})) == ["c"]


async def test_the_ids_of_sse_are_cursors() -> None:
    log = GrowingLog()
    log.append("a", "b")
    log.close()
    with anyio.fail_after(30):
        async with open_streams(log) as (_, served), serve(app_of(served)) as serving, httpx.AsyncClient() as client:
            async with client.stream("GET", f"{serving.url}/sse") as response:
                messages = [message async for message in read_sse(response)]
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            birth = log.state.events[0].id
            assert [(message.event, message.id) for message in messages] == [
                ("hello", None),
                ("event", f"{birth}:1"),
                ("event", f"{birth}:2"),
                ("bye", None),
            ]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"after": "3"}, 410, "cursor_gone"),
        ({"after": "1", "birth": "ev_other"}, 410, "cursor_gone"),
        ({"after": "ev_other:1"}, 410, "cursor_gone"),
        ({"after": "-1"}, 422, "invalid_request"),
        ({"after": "many"}, 422, "invalid_request"),
        ({"deltas": "maybe"}, 422, "invalid_request"),
    ],
)
async def test_a_place_that_is_not_in_the_log_is_refused(query: dict[str, str], status: int, code: str) -> None:
    log = GrowingLog()
    log.append("a", "b")
    with anyio.fail_after(30):
        async with open_streams(log) as (_, served), serve(app_of(served)) as serving, httpx.AsyncClient() as client:
            answer = await client.get(f"{serving.url}/sse", params=query)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
            async with httpx_ws.aconnect_ws(f"{serving.ws_url}/ws", client, params=query) as socket:
                (bye,) = parse_frames(await socket.receive_text())
                with pytest.raises(httpx_ws.WebSocketDisconnect) as closed:
                    await socket.receive_text()
                assert closed.value.code == 4000 + status
                assert isinstance(bye, Bye)
                assert bye.problem is not None
                assert (bye.code, bye.problem.status, bye.problem.code) == (code, status, code)
            assert not len(served.streams)


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_ten_thousand_events_come_many_to_a_message(server: ServerName) -> None:
    log = GrowingLog()
    for number in range(10_000):
        log.append(f"message {number}")
    log.close()
    messages: list[list[Frame]] = []
    with anyio.fail_after(30):
        async with (
            open_streams(log) as (_, served),
            serve(app_of(served), server) as serving,
            httpx.AsyncClient() as client,
        ):
            async with httpx_ws.aconnect_ws(f"{serving.ws_url}/ws", client) as socket:
                messages.extend([frames async for frames in read_socket(socket)])
    assert texts_of([frame for frames in messages for frame in frames]) == [f"message {n}" for n in range(10_000)]
    assert len(messages) < 100


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
async def test_drain_says_bye_to_everybody_and_takes_nobody_else(server: ServerName, kind: str) -> None:
    log = GrowingLog()
    log.append("a")
    ended: list[str] = []
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served), serve(app_of(served), server) as serving:

            async def watch() -> None:
                *_, last = await until_bye(stream_url(kind, serving.port))
                assert isinstance(last, Bye)
                ended.append(last.code)

            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(watch)
                while len(hub) < 20:
                    await anyio.sleep(0.01)
                await hub.bye_all("draining")
                assert not len(hub)
            assert ended == ["draining"] * 20
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"{serving.url}/sse")).status_code == 503


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deleted_conversation_says_so(kind: str) -> None:
    log = GrowingLog()
    frames: list[Frame] = []
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served), serve(app_of(served)) as serving:

            async def delete() -> None:
                while not len(hub):
                    await anyio.sleep(0.01)
                await served.streams.bye("deleted")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(delete)
                frames.extend(await until_bye(stream_url(kind, serving.port)))
    assert isinstance(frames[0], Hello)
    assert (frames[0].birth, frames[0].head) == (None, 0)
    assert frames[1:] == [Bye(code="deleted")]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_silence_is_broken_by_pings(kind: str) -> None:
    log = GrowingLog()
    frames: list[Frame] = []
    with anyio.fail_after(30):
        async with open_streams(log, ping=0.05, sweep=0.01) as (_, served), serve(app_of(served)) as serving:

            async def close_later() -> None:
                await anyio.sleep(0.5)
                log.close()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(close_later)
                frames.extend(await until_bye(stream_url(kind, serving.port)))
    assert 2 <= frames.count(Ping()) <= 11


async def test_what_a_client_is_asked_goes_to_its_socket_alone() -> None:
    log = GrowingLog()
    ask = AskFrame(id="k", kind="tool", name="look", action_id="ev_1", arguments={"path": "/"})
    with anyio.fail_after(30):
        async with open_streams(log) as (_, served), serve(app_of(served)) as serving, httpx.AsyncClient() as client:
            async with (
                httpx_ws.aconnect_ws(f"{serving.ws_url}/ws", client, params={"client": "mine"}) as mine,
                httpx_ws.aconnect_ws(f"{serving.ws_url}/ws", client) as other,
            ):
                while "mine" not in served.clients:
                    await anyio.sleep(0.01)
                served.clients["mine"].ask(ask)
                assert parse_frames(await mine.receive_text())[0].type == "hello"
                assert parse_frames(await mine.receive_text()) == [ask]
                log.append("a")
                log.close()
                others = [frame async for frames in read_socket(other) for frame in frames]
            assert [frame.type for frame in others] == ["hello", "event", "bye"]
            while served.clients:
                await anyio.sleep(0.01)


async def test_a_client_that_comes_back_ends_the_connection_it_had() -> None:
    log = GrowingLog()
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served), serve(app_of(served)) as serving, httpx.AsyncClient() as client:
            url = f"{serving.ws_url}/ws"
            async with httpx_ws.aconnect_ws(url, client, params={"client": "mine"}) as before:
                assert parse_frames(await before.receive_text())[0].type == "hello"
                async with httpx_ws.aconnect_ws(url, client, params={"client": "mine"}) as after:
                    assert parse_frames(await before.receive_text()) == [Bye(code="replaced")]
                    with pytest.raises(httpx_ws.WebSocketDisconnect) as closed:
                        await before.receive_text()
                    assert closed.value.code == 4409
                    assert parse_frames(await after.receive_text())[0].type == "hello"
                    assert len(hub) == 1
                    assert "mine" in served.clients
