// Markdown as nodes: a small safe part of it. What is not understood is shown as it is written; HTML is text.

import { html } from "./vendor/htm-preact-3.1.1.js";
import { reveal, shorten } from "./text.js";

const LONGEST_INLINE = 5_000; // longer paragraphs are shown as they are

const INLINE = new RegExp(
  [
    /(`+)(?!`)([^\n]*?[^`\n])\1(?!`)/, // code
    /!?\[([^\]\n]{1,500})\]\((\S{1,2000}?)\)/, // link, or a picture, which is not loaded
    /\*\*(?=\S)([^\n]{1,1000}?\S)\*\*/,
    /(?<![\w*])[*](?=[^\s*])([^*\n]{0,1000}?[^\s*])[*](?![\w*])|(?<![\w_])_(?=[^\s_])([^_\n]{0,1000}?[^\s_])_(?![\w_])/,
    /~~(?=\S)([^\n]{1,1000}?\S)~~/,
    /(https?:\/\/[^\s<>"'`]{1,2000}[^\s<>"'`.,;:!?)\]}*_])/,
  ].map((part) => part.source).join("|"),
  "g",
);

/** Return Markdown as nodes, on lines of their own. */
export function Markdown({ text }) {
  return html`<div class="markdown" dir="auto">${blocks(reveal(text).split("\n"))}</div>`;
}

/** Return one line of Markdown, as of a heading, as nodes. */
export const inline = (text) => spans(reveal(text));

function blocks(lines) {
  const nodes = [];
  for (let at = 0; at < lines.length; ) {
    const [node, next] = readFence(lines, at) ?? readTable(lines, at) ?? readList(lines, at) ?? readQuote(lines, at) ?? readLine(lines, at);
    if (node) nodes.push(node);
    at = next;
  }
  return nodes;
}

function readFence(lines, at) {
  const open = /^ {0,3}(`{3,}|~{3,})/.exec(lines[at]);
  if (!open) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(open[1])) end += 1;
  return [html`<pre><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`, end + 1];
}

function readTable(lines, at) {
  if (!lines[at].includes("|") || !/^ *\|?[ :-]*-[ :|-]*$/.test(lines[at + 1] ?? "") || !lines[at + 1].includes("|")) return null;
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const rows = lines.slice(at + 2, end).map((line) => html`<tr>${cells(line).map((cell) => html`<td>${spans(cell)}</td>`)}</tr>`);
  const head = cells(lines[at]).map((cell) => html`<th scope="col">${spans(cell)}</th>`);
  return [html`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>`, end];
}

const ITEM = /^( *)(?:[-*+]|(\d{1,9})[.)]) +(.*)$/;

function readList(lines, at) {
  const first = ITEM.exec(lines[at]);
  if (!first || first[1].length > 40) return null;
  const indent = first[1].length;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length !== indent || Boolean(item[2]) !== Boolean(first[2])) break;
    const inner = [item[3]];
    end += 1;
    const belongs = (line) => line.trim() && line.search(/\S/) > indent;
    while (end < lines.length && (belongs(lines[end]) || (!lines[end].trim() && belongs(lines[end + 1] ?? "")))) inner.push(lines[end++]);
    const depth = Math.min(...inner.slice(1).filter((line) => line.trim()).map((line) => line.search(/\S/)), 40);
    items.push(html`<li>${blocks([inner[0], ...inner.slice(1).map((line) => line.slice(depth))])}</li>`);
    if (end < lines.length && !lines[end].trim() && ITEM.test(lines[end + 1] ?? "")) end += 1;
  }
  return [first[2] ? html`<ol start=${Number(first[2])}>${items}</ol>` : html`<ul>${items}</ul>`, end];
}

function readQuote(lines, at) {
  if (!/^ {0,3}>/.test(lines[at])) return null;
  let end = at;
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [html`<blockquote>${inner.map((line) => html`<p>${spans(line)}</p>`)}</blockquote>`, end];
}

function readLine(lines, at) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const heading = /^ {0,3}(#{1,6}) +(.*?)#*$/.exec(line);
  // The page's own headings come first: those of a text begin below them.
  if (heading) return [html`<${`h${Math.min(heading[1].length + 2, 6)}`}>${spans(heading[2])}<//>`, at + 1];
  if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) return [html`<hr />`, at + 1];
  let end = at + 1;
  const goesOn = (next) => next.trim() && !/^ {0,3}(#{1,6} |>|`{3,}|~{3,})/.test(next) && !ITEM.test(next);
  while (end < lines.length && goesOn(lines[end])) end += 1;
  const parts = lines.slice(at, end).flatMap((part, index) => (index ? [html`<br />`, ...spans(part)] : spans(part)));
  return [html`<p>${parts}</p>`, end];
}

function spans(text) {
  if (text.length > LONGEST_INLINE) return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > end) nodes.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const [whole, , code, label, target, strong, star, line, struck, bare] = found;
    if (code !== undefined) nodes.push(html`<code>${code.length > 2 && code.startsWith(" ") && code.endsWith(" ") ? code.slice(1, -1) : code}</code>`);
    else if (label !== undefined) nodes.push(link(label, target, whole));
    else if (strong !== undefined) nodes.push(html`<strong>${spans(strong)}</strong>`);
    else if (struck !== undefined) nodes.push(html`<s>${spans(struck)}</s>`);
    else if (bare !== undefined) nodes.push(link(bare, bare, whole));
    else nodes.push(html`<em>${spans(star ?? line)}</em>`);
  }
  if (end < text.length) nodes.push(text.slice(end));
  return nodes;
}

/** A link, with its target beside it where the words are other ones. Only http and https; all else stays text. */
function link(label, target, whole) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return whole;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return whole;
  const shown = label === target ? null : html` <span class="target">(${shorten(url.href, 80)})</span>`;
  return html`<a href=${url.href} target="_blank" rel="noopener noreferrer nofollow"><bdi>${label}</bdi></a>${shown}`;
}
