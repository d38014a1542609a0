// Events folded into what a timeline shows: words, calls with their answers, notices. Draws nothing.

const PROGRESS = 60_000; // characters of a running tool's output that are kept

export class Log {
  constructor() {
    this.clear();
  }

  clear() {
    this.events = [];
    this.birth = null;
    this.loaded = false;
    this.live = new Map(); // replies that are being said, by their id
    this.begin();
  }

  begin() {
    this.items = [];
    this.calls = new Map(); // by the id of the action
    this.questions = new Map();
    this.moves = new Map(); // seq of a rewind: where it went
    this.status = null;
    this.title = null;
  }

  get first() {
    return this.events[0]?.seq ?? 1;
  }

  get head() {
    return this.events.at(-1)?.seq ?? 0;
  }

  load(events, birth) {
    this.clear();
    this.birth = birth;
    this.loaded = true;
    events.forEach((event) => this.add(event));
  }

  /** Add events in front; what they mean for the later ones is worked out anew. */
  prepend(earlier) {
    const all = [...earlier, ...this.events];
    this.events = [];
    this.begin();
    all.forEach((event) => this.add(event));
  }

  add(event) {
    if (event.seq <= this.head) return;
    this.events.push(event);
    if (event.reply_id) this.live.delete(event.reply_id);
    if (Object.hasOwn(FOLD, event.kind)) FOLD[event.kind].call(this, event);
    else this.notice(event, `An event of kind ${event.kind}`);
  }

  /** Add a piece of a reply, or of a tool's output. */
  addPiece(piece) {
    if (piece.type === "gap") {
      for (const reply of this.live.values()) reply.text.gap = reply.reasoning.gap = true;
    } else if (piece.type === "reset") {
      this.live.delete(piece.reply_id);
    } else if (piece.type === "progress") {
      const call = this.calls.get(piece.action_id);
      if (!call || call.answer) return;
      append(call.progress, piece);
      if (call.progress.text.length > 2 * PROGRESS) call.progress.text = `…${call.progress.text.slice(-PROGRESS)}`;
      call.rev += 1;
    } else {
      this.addToReply(piece);
    }
  }

  addToReply(piece) {
    let reply = this.live.get(piece.reply_id);
    if (reply && piece.attempt < reply.attempt) return;
    if (!reply || piece.attempt > reply.attempt) {
      reply = { id: piece.reply_id, attempt: piece.attempt, text: stream(), reasoning: stream(), calls: [] };
      this.live.set(piece.reply_id, reply);
    }
    if (piece.type !== "tool_call") append(reply[piece.type], piece);
    else if (piece.tool_name) reply.calls.push({ name: piece.tool_name, size: piece.text.length });
    else if (reply.calls.length) reply.calls.at(-1).size += piece.text.length;
  }

  push(event, type, fields) {
    const item = { key: `${event.seq}${type}`, seq: event.seq, at: event.timestamp, type, rev: 0, off: false, ...fields };
    this.items.push(item);
    return item;
  }

  notice(event, text, tone = "quiet", detail = null) {
    this.push(event, "notice", { text, tone, detail });
  }

  said(event, blocks, source) {
    if (blocks.some((block) => block.type !== "redacted_thinking" && block.type !== "provider")) {
      this.push(event, "said", { blocks, source });
    }
  }

  change(id, fields) {
    const call = this.calls.get(id);
    if (call) Object.assign(call, fields, { rev: call.rev + 1 });
    return call;
  }

  answer(event, state) {
    this.change(event.cause, { answer: event, state });
  }

  /** Mark what is off the branch that the conversation is on. */
  follow() {
    const on = new Set();
    for (let seq = this.head; seq >= this.first; seq = this.moves.get(seq) ?? seq - 1) on.add(seq);
    for (const item of this.items) item.off = !on.has(item.seq);
  }

  /** The calls that wait for a yes or no, and the questions that wait for an answer. */
  get waiting() {
    return this.items.filter((item) => !item.off && (item.state === "waiting" || item.state === "open"));
  }
}

const nothing = () => {};

const FOLD = {
  message(event) {
    if (event.source === "environment") this.notice(event, "The agent was told", "quiet", textOf(event.message.content));
    else this.said(event, event.message.content, event.source);
  },
  action(event) {
    this.said(event, event.before, "agent");
    const call = this.push(event, "call", { event, state: "new", asks: false, progress: stream(), assessed: null, approved: null, answer: null });
    this.calls.set(event.id, call);
    if (event.after.length) this.said({ ...event, seq: event.seq }, event.after, "agent");
  },
  action_assessed(event) {
    this.change(event.cause, { assessed: event, ...(event.verdict === "ask" ? { state: "waiting" } : {}) });
  },
  action_approved(event) {
    this.change(event.cause, { approved: event, state: "approved" });
  },
  action_started(event) {
    this.change(event.cause, { state: "running" });
  },
  observation(event) {
    this.answer(event, event.is_error ? "failed" : "done");
  },
  user_reject(event) {
    this.answer(event, "rejected");
  },
  agent_error(event) {
    this.answer(event, event.code === "denied" ? "denied" : event.outcome);
  },
  question_asked(event) {
    this.questions.set(event.id, this.push(event, "question", { event, state: "open", outcome: null }));
    if (event.resumes) this.change(event.cause, { state: "asked" });
    else if (!event.live) this.change(event.cause, { asks: true });
  },
  question_answered(event) {
    const question = this.questions.get(event.question);
    if (question) Object.assign(question, { state: "closed", outcome: event, rev: question.rev + 1 });
  },
  conversation_state_update(event) {
    const { update } = event;
    if (update.fact === "title") this.title = update.title;
    if (update.fact === "toolset" || update.fact === "context") this.notice(event, update.detail, "warn");
    if (update.fact !== "status") return;
    this.status = update.status;
    if (update.status !== "running") this.live.clear();
    if (update.status === "stuck") this.notice(event, "Stuck", "bad", update.detail);
    if (update.status === "paused") this.notice(event, update.code === "recovered" ? "Paused after a restart" : "Paused", "quiet", update.detail);
  },
  conversation_error(event) {
    this.notice(event, event.raised ? event.code : `Limit reached: ${event.code}`, "bad", event.detail);
  },
  retry(event) {
    const next = event.next_model ? ` with ${event.next_model}` : "";
    this.live.clear();
    this.notice(event, `The model call failed; next try${next} in ${Math.round(event.delay * 10) / 10} s`, "warn", event.error);
  },
  interrupt(event) {
    this.live.clear();
    if (event.partial_text) this.said(event, [{ type: "text", text: event.partial_text }], "agent");
    this.notice(event, "Interrupted", "warn", event.reason);
  },
  head_moved(event) {
    this.moves.set(event.seq, event.to);
    this.notice(event, `Rewound to event ${event.to}`);
    this.follow();
  },
  condensation(event) {
    const what = event.forgotten.length ? `${event.forgotten.length} events` : `${event.masked.length} answers`;
    this.notice(event, `History shortened: the model is not shown ${what} any more`, "quiet", event.summary);
  },
  agent_configured(event) {
    const model = event.agent?.llm?.model ?? event.agent?.model;
    this.notice(event, model ? `Agent with ${model}` : "Agent configured");
  },
  context_added(event) {
    this.notice(event, `Context: ${event.name}`, "quiet", event.text);
  },
  system_prompt(event) {
    this.notice(event, `System prompt, ${event.tools.length} tools`, "quiet", event.prompt);
  },
  hook(event) {
    this.notice(event, `Hook ${event.hook}: ${event.outcome}`, "quiet", event.output);
  },
  usage: nothing,
  pause: nothing,
  workspace_opened: nothing,
  condensation_request: nothing,
  condensation_summary: nothing,
};

export const textOf = (blocks) => blocks.filter((block) => block.type === "text").map((block) => block.text).join("\n");

const stream = () => ({ text: "", end: 0, gap: false });

/** Add a piece at its offset, which counts code points: what is missing shows as "…", what came twice is passed over. */
function append(into, piece) {
  let text = piece.text;
  const points = [...text];
  if (piece.offset < into.end) text = points.slice(into.end - piece.offset).join("");
  else if (piece.offset > into.end || into.gap) into.text += "…";
  into.gap = false;
  into.text += text;
  into.end = Math.max(into.end, piece.offset + points.length);
}
