"""The watch page in a browser: Debian's Chromium against a server in a process of its own."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from page_browser import Server, Watched

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install agentcore-runtime[test-serve]"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs /usr/bin/chromium: apt-get install chromium"),
]
ASK_ALWAYS = {"name": "always_confirm"}


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    server = Server(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def anonymous(browser: Any, server: Server) -> Generator[Watched]:
    """A browser that is not logged in. Whatever a test does, it asks no other place, and breaks no policy."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(15_000)
    watched = Watched(context)
    yield watched
    own = urlsplit(server.url).netloc
    assert {urlsplit(url).netloc for url in watched.requests if not url.startswith(("data:", "blob:"))} == {own}
    # That the server was away, or said no, a browser notes by itself.
    expected = ("Failed to load resource", "WebSocket connection to")
    assert [text for text in watched.complaints if not text.startswith(expected)] == []
    context.close()


@pytest.fixture
def watched(anonymous: Watched, server: Server) -> Watched:
    """A browser that came by the link of the server."""
    anonymous.page.goto(server.link)
    anonymous.page.wait_for_url(f"{server.url}/")
    anonymous.page.wait_for_selector("nav.list")
    return anonymous


def expect(locator: Any) -> Any:
    return playwright.expect(locator)


def test_without_a_session_it_says_how_to_get_in(anonymous: Watched, server: Server) -> None:
    page = anonymous.page
    page.goto(server.url)
    expect(page.locator("main")).to_contain_text("Open the link that agentcore serve prints")


def test_the_link_logs_in_once_and_leaves_no_key_behind(watched: Watched, server: Server, browser: Any) -> None:
    page = watched.page
    conversation = server.make("Hello", "hi")
    watched.open(server, conversation)
    expect(page.locator(".timeline")).to_contain_text("Done: Hello.")
    secret = server.key.rpartition("_")[2]
    code = server.link.partition("=")[2]
    seen = [
        page.url,
        page.content(),
        page.evaluate("document.cookie + JSON.stringify({...localStorage, ...sessionStorage})"),
    ]
    assert not [text for text in seen if secret in text or code in text or "acs_" in text]
    assert not [url for url in watched.requests if secret in url]
    with browser.new_context() as other:
        assert other.new_page().goto(server.link).status == 401


def test_a_conversation_is_begun_and_watched(watched: Watched, server: Server) -> None:
    page = watched.page
    page.click("nav >> text=New")
    page.get_by_label("Message").fill("look at it")
    page.get_by_label("Title").fill("A look around")
    page.get_by_role("button", name="Create and run").click()
    timeline = page.locator(".timeline")
    expect(timeline).to_contain_text("It reads it once now")
    expect(page.locator(".said.user")).to_have_text("look at it")
    for words in (
        "pytest -q",
        "1 failed",
        "exit code 1",
        "port = options.port",
        "def main()",
        "12 KB",
        "Fix the option",
        "40%",
        "words of a newer block",
    ):
        expect(timeline).to_contain_text(words)
    assert page.locator(".diff .add").inner_text().strip() == "+port = options.port"
    assert page.get_by_role("link", name="A sub-agent").get_attribute("href") == "#/c/sub-agent-1"
    guide = page.get_by_role("link", name="the guide")
    assert guide.get_attribute("rel") == "noopener noreferrer nofollow"
    expect(timeline).to_contain_text("(https://example.invalid/guide)")
    expect(page.locator(".head .status")).to_have_text("Finished")
    page.click(".usage summary")
    expect(page.locator(".usage .panel")).to_contain_text("24,690")
    expect(page.locator("nav.list li").first).to_contain_text("A look around")
    page.get_by_label("Filter conversations").fill("nowhere")
    expect(page.locator("nav.list .empty")).to_be_visible()
    page.get_by_label("Message").fill("again")
    page.keyboard.press("Enter")
    expect(timeline).to_contain_text("Done: Hello.")


def test_words_show_as_they_come_and_a_reload_in_the_middle_ends_up_the_same(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Slow"))
    page.get_by_label("Message").fill("slow")
    page.keyboard.press("Enter")
    expect(page.locator(".said.live")).to_contain_text("These words come")
    expect(page.locator(".timeline")).not_to_contain_text("waits")
    page.reload()
    expect(page.locator(".said.user")).to_have_text("slow")
    expect(page.locator(".timeline .working")).to_be_visible()
    server.make("The gate", "open")
    expect(page.locator(".timeline")).to_contain_text("These words come one by one, and the last one waits.")
    expect(page.locator(".said.agent")).to_have_count(1)
    page.reload()
    expect(page.locator(".said.agent")).to_have_text("These words come one by one, and the last one waits.")


def test_output_of_a_tool_shows_while_it_runs(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Listen"))
    page.get_by_label("Message").fill("listen")
    page.keyboard.press("Enter")
    expect(page.locator(".call.live")).to_contain_text("line two")
    server.make("The gate", "open")
    expect(page.locator(".call.good")).to_contain_text("line three")


def test_an_action_is_approved_with_other_arguments_and_one_is_rejected(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Deploy", "deploy", policy=ASK_ALWAYS))
    expect(page.locator("nav.list li").first).to_contain_text("Needs you")
    expect(page.locator(".ask")).to_contain_text("production")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Arguments, as JSON").fill("{nonsense")
    page.get_by_role("button", name="Approve with changes").click()
    expect(page.locator(".ask [role=alert]")).to_contain_text("not JSON")
    page.get_by_label("Arguments, as JSON").fill('{"target": "the moon"}')
    page.get_by_role("button", name="Approve with changes").click()
    expect(page.locator(".timeline")).to_contain_text("deployed to the moon by make deploy")
    page.get_by_label("Message").fill("deploy")
    page.keyboard.press("Enter")
    page.get_by_label("Reason for rejecting").fill("not on a Friday")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator(".call.bad")).to_contain_text("not on a Friday")


def test_several_actions_are_approved_at_once(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Twice", "twice", policy=ASK_ALWAYS))
    expect(page.locator(".ask")).to_have_count(2)
    page.get_by_role("button", name="Approve all").click()
    expect(page.locator(".call.good")).to_have_count(2)
    expect(page.locator(".ask")).to_have_count(0)


def test_questions_are_answered_and_declined(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Ask", "ask"))
    page.get_by_role("button", name="9000").click()
    expect(page.locator(".question.closed")).to_contain_text("9000")
    for answer, shown in (("many", "whole number"), ("42", "42")):
        if answer == "many":
            page.get_by_label("Message").fill("number")
            page.keyboard.press("Enter")
        page.get_by_label("Answer").fill(answer)
        page.get_by_role("button", name="Answer").click()
        expect(page.locator(".question").last).to_contain_text(shown)
    page.get_by_label("Message").fill("number")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Decline").click()
    expect(page.locator(".question").last).to_contain_text("Declined")


def test_a_run_is_interrupted_and_one_is_paused_and_run_again(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Slow"))
    page.get_by_label("Message").fill("slow")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Interrupt").click()
    expect(page.locator(".timeline")).to_contain_text("Interrupted")
    page.get_by_label("Message").fill("listen")
    page.keyboard.press("Enter")
    expect(page.locator(".call.live")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    server.make("The gate", "open")
    expect(page.locator(".head .status")).to_have_text("Paused")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".timeline")).to_contain_text("Done: line one")


def test_it_goes_on_after_the_server_was_killed_and_started_again(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Deploy", "deploy", policy=ASK_ALWAYS))
    server.kill()
    expect(page.locator(".banner.lost")).to_contain_text("Reconnecting")
    server.start()
    expect(page.locator(".banner.lost")).to_have_count(0)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".timeline")).to_contain_text("Done: deployed to production")
    expect(page.locator(".call")).to_have_count(1)
    expect(page.locator(".said.user")).to_have_count(1)


def test_a_run_under_way_is_followed_over_a_restart(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Slow"))
    page.get_by_label("Message").fill("slow")
    page.keyboard.press("Enter")
    expect(page.locator(".said.live")).to_contain_text("These words come")
    server.kill()
    server.start()
    server.make("The gate", "open")
    expect(page.locator(".said.agent")).to_have_text("These words come one by one, and the last one waits.")
    expect(page.locator(".said.user")).to_have_count(1)


def test_a_session_that_is_over_is_said(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Hello", "hi"))
    page.context.clear_cookies()
    expect(page.locator("main.denied")).to_be_visible()


def test_a_hostile_conversation_is_text(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("<b onclick=alert(1)>\u202etitle", "hostile", tags={}))
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".timeline")).to_contain_text("<script>window.hacked = 1</script>")
    expect(page.locator(".head h2")).to_contain_text("<b onclick=alert(1)>⟨U+202E⟩title")
    text = page.locator(".timeline").inner_text()
    assert "⟨U+202E⟩gnp.exe" in text
    assert "␛[31mred" in text  # in words of the model, and gone from the output of a tool
    assert "\nred ⟨U+202E⟩" in text
    assert not {"\x1b", "\u202e", "\u2066", "\0"} & set(page.content())
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main b, main i").count() == 0
    targets = page.locator("main a[target]").evaluate_all("links => links.map((link) => new URL(link.href).protocol)")
    assert set(targets) == {"https:"}
    assert "title" not in page.title().replace("⟨U+202E⟩title", "")


def test_a_line_of_five_megabytes_stays_usable(watched: Watched, server: Server) -> None:
    page = watched.open(server, server.make("Huge", "huge"))
    expect(page.locator(".timeline")).to_contain_text("Show more")
    assert len(page.content()) < 200_000
    page.get_by_role("button", name="Show more").click()
    assert is_quick(page)


def test_ten_thousand_events_stay_usable(watched: Watched, server: Server) -> None:
    long = server.make("Long")
    server.kill()
    server.run("--messages", long, "10000")
    server.start()
    page = watched.open(server, long)
    expect(page.locator(".said.user").last).to_have_text("message 9999")
    assert page.locator(".said").count() < 400
    for earlier in (9849, 9699):
        page.get_by_role("button", name="Show earlier").click()
        expect(page.locator(".timeline")).to_contain_text(f"message {earlier}")
    assert is_quick(page)
    page.get_by_role("button", name="Newest").click()
    page.get_by_label("Message").fill("and one more")
    page.keyboard.press("Enter")
    expect(page.locator(".timeline")).to_contain_text("Done: Hello.")


def is_quick(page: Any) -> bool:
    """Return whether the page answers, and draws a key that is typed, without a stall."""
    page.get_by_label("Message").fill("a")
    drawn = "new Promise((done) => { const at = performance.now(); requestAnimationFrame(() => setTimeout(() => done(performance.now() - at))); })"
    return min(page.evaluate(drawn) for _ in range(5)) < 250


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_everything_has_a_name(watched: Watched, server: Server, scheme: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 380, "height": 780})
    page.emulate_media(color_scheme=scheme)
    for conversation in (
        server.make("Look", "look"),
        server.make("Hostile " + "w" * 300, "hostile"),
        server.make("Deploy", "deploy", policy=ASK_ALWAYS),
    ):
        watched.open(server, conversation)
        page.wait_for_selector(".timeline article")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        nameless = (
            "all => all.filter((each) => !each.labels?.length && !each.ariaLabel && !each.textContent.trim()).length"
        )
        assert page.locator("button, input, textarea, select, a").evaluate_all(nameless) == 0
    page.get_by_label("All conversations").click()
    expect(page.locator("nav.list")).to_be_visible()
    assert page.evaluate(CONTRAST) >= 4.5


# The least contrast of the colours of words with what they stand on.
CONTRAST = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  const light = (name) => {
    canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const grounds = ["--ground", "--side", "--raised", "--tint"];
  const pairs = ["--text", "--quiet", "--accent", "--good", "--warn", "--bad"].flatMap((ink) => grounds.map((ground) => [ink, ground]));
  pairs.push(["--on-accent", "--accent"], ["--warn", "--warn-tint"], ["--bad", "--warn-tint"], ["--quiet", "--warn-tint"], ["--text", "--add"], ["--text", "--cut"]);
  return Math.min(...pairs.map(([ink, ground]) => { const both = [light(ink), light(ground)].sort((a, b) => b - a); return both[0] / both[1]; }));
}"""


def test_pieces_are_put_together_by_their_offsets(watched: Watched) -> None:
    fold = """async () => {
      const { Log } = await import("./page/log.js");
      const log = new Log();
      const text = (offset, text, attempt = 1) => log.addPiece({ type: "text", reply_id: "r", attempt, offset, text });
      const shown = () => log.live.get("r")?.text.text;
      const seen = [];
      text(0, "a😀b"); text(3, "c"); seen.push(shown());
      text(2, "bcd"); seen.push(shown());
      text(7, "h"); seen.push(shown());
      text(0, "new", 2); text(8, "late", 1); seen.push(shown());
      log.addPiece({ type: "gap" }); text(3, "er", 2); seen.push(shown());
      log.addPiece({ type: "reset", reply_id: "r", attempt: 2 }); seen.push(shown() ?? null);
      text(6, "joined late", 3); seen.push(shown());
      return seen;
    }"""
    assert watched.page.evaluate(fold) == ["a😀bc", "a😀bcd", "a😀bcd…h", "new", "new…er", None, "…joined late"]


def test_what_was_rewound_is_off_the_timeline(watched: Watched, server: Server) -> None:
    conversation = server.make("Rewound", "first")
    page = watched.open(server, conversation)
    expect(page.locator(".said.user")).to_have_count(1)
    settled = server.ask("GET", f"conversations/{conversation}")["head"]
    page.get_by_label("Message").fill("second")
    page.keyboard.press("Enter")
    expect(page.locator(".said.user")).to_have_count(2)
    expect(page.locator(".said.agent")).to_have_count(2)
    expect(page.locator(".head .status")).to_have_text("Finished")
    server.ask("POST", f"conversations/{conversation}/rewind", {"to": settled})
    # A list waits until the second is gone; a text alone fails at once while there are two.
    expect(page.locator(".said.user")).to_have_text(["first"])
    expect(page.locator(".timeline")).to_contain_text("Rewound to event")
