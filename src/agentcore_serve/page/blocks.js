// Display blocks, as tools record them with their calls and answers. No tool is known here by its name.

import { Component, html } from "./vendor/htm-preact-3.1.1.js";
import { PICTURES, pictureUrl } from "./api.js";
import { inline, Markdown } from "./markdown.js";
import { number, plainOutput, reveal } from "./text.js";

const LINES = 14;
const CLOSED = 2_000; // characters, before somebody asks for more
const WORDS = 20_000;
const MORE = 100_000;

/** Text of any length: its beginning (or its end, of output that comes), and the rest on request, by the piece. */
export class Long extends Component {
  render({ text, tail, lines = LINES, label = "Output", kind = "output", line = null }, { shown = 0 }) {
    const all = String(text ?? "");
    let part = cut(all, shown || CLOSED, tail);
    if (!shown) part = part.split("\n").slice(...(tail ? [-lines] : [0, lines])).join("\n");
    const clean = kind === "output" ? plainOutput(part) : reveal(part);
    return html`<div class="long">
      <pre tabindex="0" aria-label=${label} class=${kind}>${line ? clean.split("\n").map(line) : clean}</pre>
      ${part.length < all.length && html`<button class="link" onClick=${() => this.setState({ shown: shown + MORE })}>Show more (${number(all.length - part.length)} characters)</button>`}
      ${shown > 0 && html`<button class="link" onClick=${() => this.setState({ shown: 0 })}>Show less</button>`}
    </div>`;
  }
}

const cut = (text, most, tail) => (tail ? text.slice(-most) : text.slice(0, most));

class Picture extends Component {
  componentDidMount() {
    const { conversation, block } = this.props;
    pictureUrl(conversation, block.blob, block.media_type).then(
      (url) => this.setState({ url, failed: url === null }),
      () => this.setState({ failed: true }),
    );
  }

  componentWillUnmount() {
    if (this.state.url) URL.revokeObjectURL(this.state.url);
  }

  render({ block }, { url, failed }) {
    const words = reveal(block.text ?? `a picture: ${block.media_type}`);
    if (url) return html`<img src=${url} alt=${words} />`;
    return html`<p class="quiet">[${words}${failed ? "; it cannot be shown" : ""}]</p>`;
  }
}

const diffLine = (line) => {
  const kind = /^(\+\+\+|---|diff |index )/.test(line) ? "file" : { "+": "add", "-": "cut", "@": "hunk" }[line[0]];
  return html`<span class=${kind ?? "same"}>${line}${"\n"}</span>`;
};

const MARKS = { todo: ["○", "to do"], in_progress: ["◐", "in progress"], done: ["●", "done"] };

const DRAW = {
  markdown: (block) => block.text && html`<${Markdown} text=${block.text} />`,
  command: (block, { text }) => html`
    <pre class="command" tabindex="0" aria-label="Command"><span aria-hidden="true">$ </span>${reveal(block.command)}</pre>
    ${(block.output ?? text) && html`<${Long} text=${block.output ?? text} />`}
    ${block.exit_code !== null && html`<p class=${block.exit_code ? "bad small" : "quiet small"}>exit code ${block.exit_code}</p>`}
  `,
  diff: (block) => html`
    ${block.path && html`<p class="path">${reveal(block.path)}</p>`}
    <${Long} text=${block.diff} kind="diff" label="Change" lines=${40} line=${diffLine} />
  `,
  excerpt: (block, { text }) => html`
    <p class="path">${reveal(block.path)}${block.first !== null && `, from line ${block.first}`}</p>
    <${Long} text=${block.text ?? text} kind="excerpt" label="Lines of a file" />
  `,
  table: (block) => html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
    ${block.columns.length > 0 && html`<thead><tr>${block.columns.map((cell) => html`<th scope="col">${reveal(cell)}</th>`)}</tr></thead>`}
    <tbody>${block.rows.slice(0, 500).map((row) => html`<tr>${row.map((cell) => html`<td>${reveal(cell)}</td>`)}</tr>`)}</tbody>
  </table>${block.rows.length > 500 && html`<p class="quiet">${number(block.rows.length - 500)} more rows</p>`}</div>`,
  tasks: (block) => html`<ul class="tasks">${block.tasks.map((task) => {
    const [mark, words] = MARKS[task.status] ?? ["·", reveal(task.status)];
    return html`<li class=${task.status}><span class="mark" role="img" aria-label=${words}>${mark}</span>
      <span>${reveal(task.title)}${task.notes && html`<small>${reveal(task.notes)}</small>`}</span></li>`;
  })}</ul>`,
  image: (block, { conversation }) => html`<${Picture} block=${block} conversation=${conversation} />`,
  progress: (block) => html`<label class="progress">${reveal(block.label)}
    ${block.done === null ? html`<progress />` : html`<progress max="1" value=${block.done} /> ${Math.round(block.done * 100)}%`}</label>`,
  conversation: (block) => html`<p><a href=${`#/c/${encodeURIComponent(block.conversation_id)}`}>${reveal(block.title || block.conversation_id)}</a></p>`,
};

/** Draw a block. `text` is the event's own, which some blocks stand for. */
export function drawBlock(block, about) {
  if (Object.hasOwn(DRAW, block.kind)) return DRAW[block.kind](block, about);
  return html`<${Long} text=${block.text ?? `[a block of kind ${block.kind}; a newer version can show it]`} />`;
}

/** Draw what a message, or an answer without display blocks, consists of. */
export function drawContent(block) {
  switch (block.type) {
    case "text":
      return html`<${Words} text=${block.text} />`;
    case "refusal":
      return html`<p class="bad">${reveal(block.text)}</p>`;
    case "thinking":
    case "reasoning": {
      const text = block.text ?? block.summary.join("\n\n");
      return text && html`<details class="thinking"><summary>Thinking</summary><${Words} text=${text} /></details>`;
    }
    case "image":
      // A picture elsewhere is not loaded: its server would learn who looks.
      if (block.data && PICTURES.includes(block.media_type)) return html`<img alt="A picture" src=${`data:${block.media_type};base64,${block.data}`} />`;
      return html`<p class="quiet">[a picture${block.url ? `: ${reveal(block.url)}` : ""}]</p>`;
    case "document":
      return html`<p class="quiet">[a document: ${reveal(block.name ?? block.url ?? block.media_type)}]</p>`;
    case "redacted_thinking":
    case "provider":
      return null;
    default:
      return html`<p class="quiet">[a block of type ${reveal(block.type)}]</p>`;
  }
}

/** Markdown of any length: what is long is drawn in pieces. */
export class Words extends Component {
  render({ text }, { shown = WORDS }) {
    const left = text.length - shown;
    return html`<${Markdown} text=${left > 0 ? text.slice(0, shown) : text} />
      ${left > 0 && html`<button class="link" onClick=${() => this.setState({ shown: shown + MORE })}>Show more (${number(left)} characters left)</button>`}`;
  }
}

/** The line that stands for a call: of its blocks, else of its arguments. */
export function headline(event) {
  const heading = event.display.find((block) => block.kind === "markdown" && block.place === "heading");
  if (heading) return inline(heading.text.slice(0, 400));
  const command = event.display.find((block) => block.kind === "command");
  if (command) return html`<code>${reveal(command.command.split("\n")[0].slice(0, 200))}</code>`;
  const pairs = Object.entries(event.arguments).filter(([, value]) => value !== null);
  return html`<span class="arguments">${pairs.slice(0, 4).map(([name, value]) => html`<span>${reveal(name)}=<code>${reveal(asText(value).slice(0, 120).replaceAll("\n", " "))}</code> </span>`)}</span>`;
}

export const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
