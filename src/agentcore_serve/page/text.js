// Text of models, tools and people as it may be shown: nothing in it acts, and nothing in it is invisible.

const ANSI = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]/g;
const CONTROL = /[\0-\x08\x0b-\x1f\x7f]/g;
// Direction marks and overrides, invisible operators, tags, and the upper control characters.
const HIDDEN = /[\x80-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Show every character that would act or hide: ESC as a symbol, a direction override by its number. */
export function reveal(text) {
  return String(text ?? "")
    .replaceAll("\r\n", "\n")
    .replace(CONTROL, (c) => String.fromCharCode(c === "\x7f" ? 0x2421 : 0x2400 + c.charCodeAt(0)))
    .replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** The output of a program: without its colours, and lines that it wrote over as they came to be. */
export function plainOutput(text) {
  const bare = String(text ?? "").replace(ANSI, "").replaceAll("\r\n", "\n");
  if (!bare.includes("\r")) return reveal(bare);
  return reveal(bare.split("\n").map((line) => line.split("\r").findLast((part) => part) ?? "").join("\n"));
}

export function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export const number = (value) => Number(value ?? 0).toLocaleString("en");

export function tokens(count) {
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** US dollars; null is a price that nobody knows. */
export function money(cost) {
  if (cost === null || cost === undefined) return "cost unknown";
  const value = Number(cost);
  return `$${value.toFixed(value !== 0 && value < 0.1 ? 4 : 2)}`;
}

export function ago(moment, now = Date.now()) {
  if (!moment) return "";
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  if (seconds < 45) return "now";
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h`;
  return new Date(moment).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export const STATUS = {
  idle: "Idle",
  running: "Working",
  paused: "Paused",
  waiting_for_confirmation: "Needs you",
  finished: "Finished",
  stuck: "Stuck",
  error: "Error",
};
