// What waits for a person: a call for a yes or no, with other arguments if need be, and a question for its answer.

import { Component, html } from "./vendor/htm-preact-3.1.1.js";
import { command } from "./api.js";
import { asText, Long } from "./blocks.js";
import { Markdown } from "./markdown.js";
import { reveal } from "./text.js";

class Deciding extends Component {
  /** Give a command once: until it is answered, the buttons rest. */
  async give(path, body) {
    this.setState({ busy: true, problem: null });
    try {
      await command(this.props.conversation, path, body);
    } catch (error) {
      this.setState({ problem: error.message });
    }
    this.setState({ busy: false });
  }

  problem() {
    return this.state.problem && html`<p class="bad" role="alert">${reveal(this.state.problem)}</p>`;
  }
}

export class Approval extends Deciding {
  approve(event) {
    const { edited } = this.state;
    const path = `/actions/${encodeURIComponent(event.id)}/approve`;
    if (edited === undefined) return this.give(path);
    let changed;
    try {
      changed = JSON.parse(edited);
    } catch (error) {
      return this.setState({ problem: `The arguments are not JSON: ${error.message}` });
    }
    return this.give(path, { arguments: changed });
  }

  render({ item }, { edited, reason = "", busy }) {
    const { event, assessed } = item;
    const given = assessed?.arguments ?? event.arguments;
    const why = (assessed?.parts ?? []).map((part) => part.reason).filter(Boolean);
    return html`<section class="ask" aria-label=${`Decide about ${event.tool_name}`}>
      <p><strong>May this run?</strong>${assessed?.risk && html` <span class="pill">${assessed.risk} risk</span>`} ${why.map((each) => html`<span class="quiet">${reveal(each)} </span>`)}</p>
      ${edited === undefined
        ? html`<dl class="values">${Object.entries(given).map(([name, value]) => html`<dt>${reveal(name)}</dt><dd><${Long} text=${asText(value)} kind="value" label=${name} lines=${30} /></dd>`)}</dl>`
        : html`<label>Arguments, as JSON<textarea class="code" rows="8" value=${edited} onInput=${(e) => this.setState({ edited: e.target.value })}></textarea></label>`}
      <div class="row">
        <button class="primary" disabled=${busy} onClick=${() => this.approve(event)}>${edited === undefined ? "Approve" : "Approve with changes"}</button>
        <button disabled=${busy} onClick=${() => this.setState({ edited: edited === undefined ? JSON.stringify(given, null, 2) : undefined, problem: null })}>${edited === undefined ? "Edit" : "Discard changes"}</button>
        <form class="reject" onSubmit=${(e) => { e.preventDefault(); this.give(`/actions/${encodeURIComponent(event.id)}/reject`, { reason: reason.trim() || "Rejected on the watch page." }); }}>
          <input aria-label="Reason for rejecting" placeholder="Reason (optional)" value=${reason} onInput=${(e) => this.setState({ reason: e.target.value })} />
          <button class="danger" disabled=${busy}>Reject</button>
        </form>
      </div>
      ${this.problem()}
    </section>`;
  }
}

export class Question extends Deciding {
  send(event, text) {
    let value = text;
    const kind = event.answer_schema?.type;
    if (event.answer_schema && kind !== "string" && !event.options.length) {
      try {
        value = JSON.parse(text);
      } catch {
        if (kind) return this.setState({ problem: `The answer has to be ${kind === "integer" ? "a whole number" : `JSON of type ${kind}`}.` });
      }
    }
    return this.give(`/questions/${encodeURIComponent(event.id)}`, { value });
  }

  render({ item }, { text = "", busy }) {
    const { event, outcome } = item;
    const choices = event.options.length ? event.options : (event.answer_schema?.enum ?? (event.answer_schema?.type === "boolean" ? [true, false] : []));
    if (outcome) {
      const ended = outcome.outcome === "answered" ? html`<p class="answer" dir="auto">${reveal(asText(outcome.answer))}</p>` : html`<p class="quiet">${outcome.outcome === "declined" ? "Declined" : "Withdrawn"}${outcome.reason && `: ${reveal(outcome.reason)}`}</p>`;
      return html`<section class="question closed" aria-label="Question"><${Markdown} text=${event.text} />${ended}</section>`;
    }
    return html`<section class="question ask" aria-label="Question"><${Markdown} text=${event.text} />
      <div class="row">
        ${choices.map((choice) => html`<button disabled=${busy} onClick=${() => this.give(`/questions/${encodeURIComponent(event.id)}`, { value: choice })}>${choice === true ? "Yes" : choice === false ? "No" : reveal(asText(choice))}</button>`)}
        ${!choices.length && html`<form class="grow" onSubmit=${(e) => { e.preventDefault(); this.send(event, text); }}>
          <input aria-label="Answer" placeholder="Your answer" value=${text} onInput=${(e) => this.setState({ text: e.target.value })} />
          <button class="primary" disabled=${busy || !text.trim()}>Answer</button>
        </form>`}
        <button disabled=${busy} onClick=${() => this.give(`/questions/${encodeURIComponent(event.id)}/decline`, { reason: "Declined on the watch page." })}>Decline</button>
      </div>
      ${this.problem()}
    </section>`;
  }
}
