// The page: the list beside one conversation, a new one, or how to get in. The address says which.

import { Component, html, render } from "./vendor/htm-preact-3.1.1.js";
import { ConversationView } from "./conversation.js";
import { Create } from "./create.js";
import { List } from "./list.js";

class App extends Component {
  state = { place: location.hash, denied: false, stamp: 0 };

  componentDidMount() {
    addEventListener("hashchange", () => {
      this.setState({ place: location.hash, stamp: this.state.stamp + 1 });
      scrollTo(0, 0);
    });
  }

  deny() {
    this.setState({ denied: true });
  }

  render(_, { place, denied, stamp }) {
    if (denied) {
      return html`<main class="denied"><h1>agentcore</h1>
        <p>This browser is not logged in, or its session is over. Open the link that <code>agentcore serve</code> prints: it works once, for a minute. For a new one, use <code>agentcore keys link</code>.</p>
      </main>`;
    }
    const id = conversationOf(place);
    const onDenied = () => this.deny();
    const main = id
      ? html`<${ConversationView} key=${id} id=${id} onDenied=${onDenied} />`
      : place === "#/new"
        ? html`<${Create} onDenied=${onDenied} onCreated=${(made) => { location.hash = `#/c/${encodeURIComponent(made)}`; }} />`
        : html`<main class="hello"><p>Choose a conversation, or <a href="#/new">begin one</a>.</p></main>`;
    return html`<div class=${`page ${id || place === "#/new" ? "inside" : "outside"}`}>
      <${List} selected=${id} stamp=${stamp} onDenied=${onDenied} />
      ${main}
    </div>`;
  }
}

function conversationOf(place) {
  try {
    return decodeURIComponent(/^#\/c\/(.+)$/.exec(place)?.[1] ?? "");
  } catch {
    return ""; // not an address of ours
  }
}

render(html`<${App} />`, document.getElementById("app"));
