// A new conversation: with which agent, in which folder, and its first message.

import { Component, html } from "./vendor/htm-preact-3.1.1.js";
import { command, get, request } from "./api.js";
import { reveal } from "./text.js";

const POLICIES = {
  never_confirm: "Every call runs without asking",
  confirm_risky: "Risky calls wait for a yes",
  always_confirm: "Every call waits for a yes",
};

export class Create extends Component {
  state = { agents: null, agent: "", policy: "never_confirm", folder: "", title: "", text: "", busy: false, problem: null };

  async componentDidMount() {
    try {
      const agents = await get("agents");
      this.setState({ agents, agent: (agents.find((agent) => agent.default) ?? agents[0])?.name ?? "" });
    } catch (error) {
      if (error.status === 401) this.props.onDenied();
      else this.setState({ problem: error.message });
    }
  }

  async submit() {
    const { agent, policy, folder, title, text } = this.state;
    this.setState({ busy: true, problem: null });
    try {
      // A second try after a problem goes on with the conversation that the first one made.
      this.made ??= await request("POST", "conversations", {
        ...(agent && { agent }),
        policy: { name: policy },
        ...(folder.trim() && { workspace: { folder: folder.trim() } }),
        ...(title.trim() && { title: title.trim() }),
      });
      if (text.trim()) await command(this.made.id, "/run", { text: text.trim() });
      this.props.onCreated(this.made.id);
    } catch (error) {
      this.setState({ busy: false, problem: error.message });
    }
  }

  render(_, { agents, agent, policy, folder, title, text, busy, problem }) {
    const chosen = agents?.find((each) => each.name === agent);
    const set = (name) => (event) => this.setState({ [name]: event.target.value });
    return html`<main class="create">
      <header class="head"><a class="back button" href="#/" aria-label="All conversations">‹</a><h2>New conversation</h2></header>
      ${agents?.length === 0 && html`<p class="banner" role="status">The server has no agents. Put one into its agents.toml, and start it again.</p>`}
      <form onSubmit=${(e) => { e.preventDefault(); this.submit(); }}>
        <label>Agent<select value=${agent} onChange=${set("agent")}>${(agents ?? []).map((each) => html`<option value=${each.name}>${reveal(each.name)}</option>`)}</select></label>
        ${chosen && html`<p class="quiet small">${reveal([chosen.description, chosen.model, chosen.tools.join(", ")].filter(Boolean).join(" · "))}</p>`}
        <label>Message<textarea rows="5" value=${text} onInput=${set("text")} placeholder="What is to be done?"></textarea></label>
        <label>Approval<select value=${policy} onChange=${set("policy")}>${Object.entries(POLICIES).map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select></label>
        <label>Title <span class="quiet">(optional)</span><input value=${title} onInput=${set("title")} maxlength="200" /></label>
        <label>Folder <span class="quiet">(optional, below the server's root)</span><input value=${folder} onInput=${set("folder")} /></label>
        ${problem && html`<p class="bad" role="alert">${reveal(problem)}</p>`}
        <div class="row"><button class="primary" disabled=${busy}>${text.trim() ? "Create and run" : "Create"}</button></div>
      </form>
    </main>`;
  }
}
