// One conversation's timeline: what was said and done, the newest at the end, and what is being said now.

import { Component, html } from "./vendor/htm-preact-3.1.1.js";
import { command } from "./api.js";
import { Approval, Question } from "./ask.js";
import { drawBlock, drawContent, headline, Long, Words } from "./blocks.js";
import { textOf } from "./log.js";
import { number, reveal } from "./text.js";

const SHOWN = 150;

const STATES = {
  new: ["Requested", "quiet"],
  waiting: ["Waits for you", "warn"],
  approved: ["Approved", "quiet"],
  running: ["Running", "live"],
  asked: ["Asked", "quiet"],
  done: ["Done", "good"],
  failed: ["Failed", "bad"],
  rejected: ["Rejected", "bad"],
  denied: ["Denied", "bad"],
  interrupted: ["Interrupted", "warn"],
  not_run: ["Not run", "quiet"],
  unknown: ["Outcome unknown", "warn"],
};

const saysOf = (event) => event.display.filter((block) => block.kind === "markdown" && block.place === "message");

/** An item is drawn again only where it changed: a timeline is long, and a token moves its end alone. */
class Item extends Component {
  shouldComponentUpdate(next) {
    return next.item !== this.props.item || next.item.rev !== this.drawn;
  }

  render({ item, conversation }) {
    this.drawn = item.rev;
    return DRAW[item.type](item, conversation);
  }
}

const DRAW = {
  said: (item) => html`<article class=${`said ${item.source}`} aria-label=${item.source === "user" ? "You" : "Agent"}>${item.blocks.map(drawContent)}</article>`,
  notice: ({ text, tone, detail }) => {
    if (!detail) return html`<p class=${`notice ${tone}`}>${reveal(text)}</p>`;
    if (tone !== "quiet") return html`<div class=${`notice ${tone}`}><strong>${reveal(text)}</strong><${Long} text=${detail} kind="detail" label="Details" /></div>`;
    return html`<details class=${`notice ${tone}`}><summary>${reveal(text)}</summary><${Long} text=${detail} kind="detail" label="Details" lines=${30} /></details>`;
  },
  question: (item, conversation) => html`<${Question} item=${item} conversation=${conversation} />`,
  call: drawCall,
};

function drawCall(item, conversation) {
  const { event, answer, state, approved } = item;
  if (item.asks && state !== "failed") return null; // its question is an item of its own
  const says = saysOf(event);
  if (says.length && (state === "done" || state === "new" || state === "running")) {
    return html`<article class="said agent" aria-label="Agent">${says.map((block) => html`<${Words} text=${block.text} />`)}</article>`;
  }
  const [words, tone] = STATES[state] ?? [state, "quiet"];
  const endings = (answer?.display ?? []).filter((block) => block.kind === "markdown" && block.place === "heading");
  return html`<article class=${`call ${tone}`} aria-label=${`Call of ${event.tool_name}`}>
    <header>
      <span class="dot" aria-hidden="true"></span>
      <strong class="tool">${reveal(event.tool_name)}</strong>
      <span class="headline">${headline(event)}</span>
      <span class="state">${state === "done" && endings.length ? reveal(endings.map((block) => block.text).join(", ").replaceAll("`", "")) : words}</span>
      ${state === "running" && html`<button class="small" onClick=${() => command(conversation, `/actions/${encodeURIComponent(event.id)}/interrupt`).catch(() => {})}>Stop</button>`}
    </header>
    ${event.malformed && html`<${Long} text=${event.malformed} kind="value" label="Arguments that could not be read" />`}
    ${answer ? drawAnswer(item, conversation) : drawRequest(item, conversation)}
    ${approved?.arguments && html`<details class="small"><summary>Ran with other arguments</summary><${Long} text=${JSON.stringify(approved.arguments, null, 2)} kind="value" label="Arguments" /></details>`}
    ${state === "waiting" && html`<${Approval} item=${item} conversation=${conversation} />`}
  </article>`;
}

/** A call without its answer: what it is about to do, and what it has put out so far. */
function drawRequest({ event, progress, state }, conversation) {
  const about = { conversation, text: null };
  const blocks = event.display.filter((block) => !(block.kind === "markdown" && block.place !== "body") && block.kind !== "command");
  const command = event.display.find((block) => block.kind === "command");
  const manyLines = command?.command.includes("\n");
  return html`${manyLines && drawBlock(command, about)} ${blocks.map((block) => drawBlock(block, about))}
    ${state === "running" && progress.text && html`<${Long} text=${progress.text} tail=${true} label="Output so far" />`}`;
}

function drawAnswer({ event, answer }, conversation) {
  if (answer.kind === "user_reject") return html`<p class="bad small">${reveal(answer.reason)}</p>`;
  if (answer.kind === "agent_error") return html`<${Long} text=${answer.error} label="Error" />`;
  const about = { conversation, text: textOf(answer.content) };
  const blocks = answer.display.filter((block) => !(block.kind === "markdown" && block.place === "heading"));
  if (answer.display.length) {
    // The command is in the call's own line, unless that shows its first line only.
    const short = (block) => block.kind === "command" && !block.command.includes("\n") && event.display.some((each) => each.command === block.command);
    return blocks.map((block) => (short(block) ? drawEnding(block, about) : drawBlock(block, about)));
  }
  return html`${about.text && html`<${Long} text=${about.text} />`} ${answer.content.filter((block) => block.type !== "text").map(drawContent)}`;
}

const drawEnding = (block, { text }) => html`
  ${(block.output ?? text) && html`<${Long} text=${block.output ?? text} />`}
  ${block.exit_code !== null && block.exit_code !== 0 && html`<p class="bad small">exit code ${block.exit_code}</p>`}
`;

function drawLive(reply) {
  return html`<article key=${reply.id} class="said agent live" aria-label="Agent, while it speaks">
    ${reply.reasoning.text && !reply.text.text && html`<details class="thinking" open><summary>Thinking</summary><p class="quiet">${reveal(reply.reasoning.text.slice(-2_000))}</p></details>`}
    ${reply.text.text && html`<${Words} text=${reply.text.text} />`}
    ${reply.calls.map((call) => html`<p class="notice live">Preparing ${reveal(call.name)}: ${number(call.size)} characters</p>`)}
  </article>`;
}

/** The page scrolls, not the timeline; it follows the end while the reader is there. */
export class Timeline extends Component {
  constructor(props) {
    super(props);
    this.state = { shown: SHOWN, away: false };
    this.box = document.scrollingElement;
    this.onScroll = () => {
      const away = !this.isAtEnd();
      if (away !== this.state.away) this.setState({ away });
    };
  }

  isAtEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 120;
  }

  componentDidMount() {
    addEventListener("scroll", this.onScroll, { passive: true });
    this.toEnd();
  }

  componentWillUnmount() {
    removeEventListener("scroll", this.onScroll);
  }

  componentDidUpdate() {
    if (this.anchor) {
      this.box.scrollTop += this.box.scrollHeight - this.anchor;
      this.anchor = null;
    } else if (!this.state.away) {
      this.toEnd();
    }
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  async earlier(rest) {
    if (!rest) await this.props.follower.loadEarlier().catch(() => {});
    this.anchor = this.box.scrollHeight;
    this.setState({ shown: this.state.shown + SHOWN, away: true });
  }

  render({ log, conversation, status }, { shown, away }) {
    const items = log.items.filter((item) => !item.off);
    const rest = Math.max(0, items.length - shown);
    const working = status === "running" && !log.live.size && !items.some((item) => item.state === "running");
    return html`<div class="timeline" role="log" aria-label="Timeline" aria-live="off">
      ${(rest > 0 || log.first > 1) && html`<button class="earlier" onClick=${() => this.earlier(rest)}>Show earlier</button>`}
      ${items.slice(rest).map((item) => html`<${Item} key=${item.key} item=${item} conversation=${conversation} />`)}
      ${[...log.live.values()].map(drawLive)}
      ${working && html`<p class="notice working"><span class="dot" aria-hidden="true"></span>Working…</p>`}
      ${away && html`<button class="newest" onClick=${() => this.toEnd()}>↓ Newest</button>`}
    </div>`;
  }
}
