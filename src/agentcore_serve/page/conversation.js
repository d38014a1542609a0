// One conversation: its head with status and cost, its timeline, and what one can do about it.

import { Component, html } from "./vendor/htm-preact-3.1.1.js";
import { at, command, get } from "./api.js";
import { Status, titleOf } from "./list.js";
import { Log } from "./log.js";
import { Follower } from "./stream.js";
import { money, number, reveal, tokens } from "./text.js";
import { Timeline } from "./timeline.js";

const INFO_EVERY = 2_000; // a key has 600 requests a minute, for all its pages

const CONNECTION = {
  connecting: "Connecting…",
  lost: "The connection is lost. Reconnecting…",
  gone: "There is no such conversation; it may have been deleted.",
};

export class ConversationView extends Component {
  componentDidMount() {
    this.log = new Log();
    this.follower = new Follower(this.props.id, this.log, () => this.changed());
    this.setState({ ready: true });
    this.loadInfo();
  }

  componentWillUnmount() {
    this.ended = true;
    this.follower.stop();
    clearTimeout(this.timer);
    document.title = "agentcore";
  }

  /** Draw once per frame, however much came. */
  changed() {
    if (this.follower?.state === "denied") this.props.onDenied();
    if (this.seen !== this.log.head || this.connection !== this.follower?.state) this.loadInfo();
    this.seen = this.log.head;
    this.connection = this.follower?.state;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      if (!this.ended) this.setState({});
    });
  }

  loadInfo() {
    if (this.timer || this.ended) return;
    this.timer = setTimeout(async () => {
      this.timer = null; // what comes from here on is asked for again
      try {
        const { id } = this.props;
        const [info, usage] = await Promise.all([get(at(id)), get(at(id, "/usage"))]);
        if (!this.ended) this.setState({ info, usage });
      } catch {
        // The follower says what is wrong, and asks again.
      }
    }, this.state.info ? INFO_EVERY : 0);
  }

  async give(path, body) {
    this.setState({ problem: null });
    try {
      await command(this.props.id, path, body);
      return true;
    } catch (error) {
      this.setState({ problem: error.message });
      return false;
    }
  }

  render({ id }, { ready, info, usage, problem }) {
    if (!ready) return html`<main class="conversation"></main>`;
    const { log, follower } = this;
    const status = log.status ?? info?.status ?? "idle";
    const waiting = log.waiting;
    const title = log.title ? reveal(log.title) : info ? titleOf(info) : reveal(id);
    document.title = `${waiting.length ? "● " : ""}${title} · agentcore`;
    const words = follower.state === "failed" ? reveal(follower.problem.message) : CONNECTION[follower.state];
    return html`<main class="conversation">
      <header class="head">
        <a class="back button" href="#/" aria-label="All conversations">‹</a>
        <h2><bdi>${title}</bdi></h2>
        <span role="status"><${Status} status=${status} waits=${waiting.length > 0} /></span>
        ${usage && html`<${Cost} info=${info} usage=${usage} />`}
      </header>
      ${words && html`<p class=${`banner ${follower.state}`} role="status">${words}</p>`}
      ${info?.holder && html`<p class="banner" role="status">Another process (${reveal(info.holder)}) writes this conversation; it can be watched here.</p>`}
      ${info?.problem && html`<p class="banner" role="status">${reveal(info.problem)}</p>`}
      ${log.loaded && html`<${Timeline} log=${log} conversation=${id} follower=${follower} status=${status} />`}
      <${Composer} status=${status} waiting=${waiting} give=${(path, body) => this.give(path, body)} problem=${problem} />
    </main>`;
  }
}

function Cost({ info, usage }) {
  const { total, cost, by_model: models, limits } = usage;
  const known = cost === null && Number(total.known_cost) > 0 ? `over ${money(total.known_cost)}` : money(cost);
  return html`<details class="usage">
    <summary>${known}<span class="tokens"> · ${tokens(total.input_tokens + total.output_tokens)} tokens</span></summary>
    <div class="panel">
      <table><thead><tr><th scope="col">Model</th><th scope="col">Calls</th><th scope="col">Read</th><th scope="col">Cached</th><th scope="col">Written</th><th scope="col">Cost</th></tr></thead>
      <tbody>${Object.entries(models).map(([model, of]) => html`<tr><th scope="row">${reveal(model)}</th><td>${number(of.requests)}</td><td>${number(of.input_tokens)}</td><td>${number(of.cache_read_tokens)}</td><td>${number(of.output_tokens)}</td><td>${money(of.unpriced_requests ? null : of.known_cost)}</td></tr>`)}</tbody></table>
      <p class="quiet small">${info?.agent && `Agent ${reveal(info.agent)}. `}${info?.model && `Model ${reveal(info.model)}. `}${limits.cost !== null && `At most ${money(limits.cost)}. `}${limits.steps !== null && `At most ${number(limits.steps)} steps a run.`}</p>
    </div>
  </details>`;
}

class Composer extends Component {
  state = { text: "", busy: false };

  async submit() {
    const text = this.state.text.trim();
    if (this.state.busy) return;
    this.setState({ busy: true });
    // It joins a run that works already, and begins one where that has just ended.
    const done = await this.props.give("/run", text ? { text } : {});
    this.setState(done ? { busy: false, text: "" } : { busy: false });
  }

  onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (this.state.text.trim()) this.submit();
  }

  render({ status, waiting, give, problem }, { text, busy }) {
    const isRunning = status === "running";
    const calls = waiting.filter((item) => item.type === "call");
    return html`<form class="composer" onSubmit=${(e) => { e.preventDefault(); this.submit(); }}>
      ${problem && html`<p class="bad" role="alert">${reveal(problem)}</p>`}
      ${calls.length > 1 && html`<div class="row"><span>${calls.length} calls wait for you.</span>
        <button type="button" onClick=${() => give("/approve")}>Approve all</button>
        <button type="button" class="danger" onClick=${() => give("/reject", { ids: calls.map((item) => item.event.id), reason: "Rejected on the watch page." })}>Reject all</button></div>`}
      <div class=${isRunning ? "entry running" : "entry"}>
        <textarea rows=${Math.min(8, text.split("\n").length)} aria-label="Message" placeholder=${isRunning ? "Message for its next step" : "Message"} value=${text}
          onInput=${(e) => this.setState({ text: e.target.value })} onKeyDown=${(e) => this.onKey(e)}></textarea>
        ${isRunning && html`<button type="button" onClick=${() => give("/pause")}>Pause</button>
          <button type="button" class="danger" onClick=${() => give("/interrupt")}>Interrupt</button>`}
        ${(text.trim() || !isRunning) && html`<button class=${text.trim() ? "primary" : ""} disabled=${busy}>${text.trim() ? "Send" : "Run"}</button>`}
      </div>
    </form>`;
  }
}
