// The list of conversations: the newest first, asked for again while somebody looks.

import { Component, html } from "./vendor/htm-preact-3.1.1.js";
import { get } from "./api.js";
import { ago, money, reveal, shorten, STATUS } from "./text.js";

const EVERY = 4_000;
const PAGE = 50;

export class List extends Component {
  state = { items: null, text: "", limit: PAGE, more: false, problem: null };

  componentDidMount() {
    this.onFocus = () => document.visibilityState === "visible" && this.load();
    document.addEventListener("visibilitychange", this.onFocus);
    this.timer = setInterval(this.onFocus, EVERY);
    this.load();
  }

  componentWillUnmount() {
    document.removeEventListener("visibilitychange", this.onFocus);
    clearInterval(this.timer);
  }

  componentDidUpdate(before) {
    if (before.stamp !== this.props.stamp) this.load();
  }

  async load() {
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const query = new URLSearchParams({ limit: String(this.state.limit) });
    if (this.state.text.trim()) query.set("text", this.state.text.trim());
    try {
      const page = await get(`conversations?${query}`);
      if (asked === this.asked) this.setState({ items: page.items, more: Boolean(page.next), problem: null });
    } catch (error) {
      if (error.status === 401) this.props.onDenied();
      else if (asked === this.asked) this.setState({ problem: error.message });
    }
  }

  filter(text) {
    this.setState({ text }, () => this.load());
  }

  render({ selected }, { items, text, limit, more, problem }) {
    return html`<nav class="list" aria-label="Conversations">
      <div class="top">
        <h1><a href="#/">agentcore</a></h1>
        <a class="button primary" href="#/new">New</a>
      </div>
      <input type="search" aria-label="Filter conversations" placeholder="Filter" value=${text} onInput=${(e) => this.filter(e.target.value)} />
      ${problem && html`<p class="banner" role="status">${reveal(problem)}</p>`}
      ${items?.length === 0 && html`<p class="empty">${text ? "No conversation has these words." : "No conversations yet."}</p>`}
      <ul>${(items ?? []).map((each) => html`<${Row} key=${each.id} of=${each} selected=${each.id === selected} />`)}</ul>
      ${more && limit < 200 && html`<button class="link" onClick=${() => this.setState({ limit: Math.min(200, limit + PAGE) }, () => this.load())}>Show more</button>`}
    </nav>`;
  }
}

export const titleOf = (info) => reveal(shorten(info.title || info.last_words?.split("\n")[0] || info.id, 120));

function Row({ of, selected }) {
  const waits = of.pending + of.questions > 0;
  return html`<li><a href=${`#/c/${encodeURIComponent(of.id)}`} aria-current=${selected ? "page" : null} class=${waits ? "waits" : ""}>
    <span class="line"><bdi class="title">${titleOf(of)}</bdi><time datetime=${of.modified}>${ago(of.modified)}</time></span>
    ${of.last_words && of.title && html`<span class="words" dir="auto">${reveal(shorten(of.last_words.replace(/[*`]|#+ /g, ""), 140))}</span>`}
    <span class="line small"><${Status} status=${of.status} waits=${waits} />${of.agent && html`<bdi>${reveal(of.agent)}</bdi>`}<span class="cost">${of.cost === null ? "" : money(of.cost)}</span></span>
  </a></li>`;
}

export function Status({ status, waits }) {
  const shown = waits && status !== "running" ? "waiting_for_confirmation" : status;
  return html`<span class=${`status ${shown}`}><span class="dot" aria-hidden="true"></span>${STATUS[shown] ?? shown}</span>`;
}
