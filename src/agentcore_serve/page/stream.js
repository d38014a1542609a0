// Follows one conversation: reads the end of its log, then its stream, and takes up where it was cut.

import { at, get, request, streamUrl } from "./api.js";

const PAGE = 200;
const SILENCE = 45_000; // three pings
const FIRST_DELAY = 300;
const LONGEST_DELAY = 5_000;

export class Follower {
  /** `changed` is called after each batch; `state` is "connecting", "live", "lost", "denied", "gone" or "failed". */
  constructor(id, log, changed) {
    this.id = id;
    this.log = log;
    this.changed = changed;
    this.state = "connecting";
    this.problem = null;
    this.delay = FIRST_DELAY;
    this.stopped = false;
    this.connect();
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.socket?.close();
  }

  /** Load the events in front of the first one that is there. */
  async loadEarlier() {
    const page = await get(at(this.id, `/events?before=${this.log.first}&limit=${PAGE}`));
    this.log.prepend(page.items.map((frame) => frame.event));
    this.changed();
  }

  async connect() {
    try {
      if (!this.log.loaded) {
        const page = await get(at(this.id, `/events?before=${2 ** 50}&limit=${PAGE}`));
        if (this.stopped) return;
        this.log.load(page.items.map((frame) => frame.event), page.birth);
        this.changed();
      }
      const { ticket } = await request("POST", "tickets");
      if (!this.stopped) this.open(ticket);
    } catch (error) {
      if (!this.stopped) this.fail(error);
    }
  }

  open(ticket) {
    const query = { after: this.log.head, ticket };
    if (this.log.birth) query.birth = this.log.birth;
    const socket = new WebSocket(streamUrl(this.id, query));
    this.socket = socket;
    this.heard();
    socket.onmessage = (message) => {
      this.heard();
      for (const line of message.data.split("\n")) if (line) this.read(JSON.parse(line));
      this.changed();
    };
    socket.onclose = () => {
      if (this.stopped || this.socket !== socket) return;
      clearTimeout(this.silence);
      if (this.state !== "gone") this.again();
    };
  }

  read(frame) {
    switch (frame.type) {
      case "hello":
        this.log.birth = frame.birth;
        this.delay = FIRST_DELAY;
        this.set("live");
        break;
      case "event":
        this.log.add(frame.event);
        break;
      case "delta":
        for (const piece of frame.items) this.log.addPiece(piece);
        break;
      case "gap":
        this.log.addPiece({ type: "gap" });
        break;
      case "bye":
        if (frame.code === "deleted") this.set("gone");
        if (frame.code === "cursor_gone") this.log.clear(); // another log by now: it is read from its end again
        break;
    }
  }

  fail(error) {
    this.problem = error;
    if (error.status === 401) this.set("denied");
    else if (error.status === 404) this.set("gone");
    else if (error.status === 0 || error.status === 429 || error.status >= 500) this.again();
    else this.set("failed");
  }

  again() {
    this.set("lost");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.delay * (0.5 + Math.random() / 2));
    this.delay = Math.min(this.delay * 2, LONGEST_DELAY);
  }

  heard() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      const socket = this.socket;
      this.socket = null;
      socket?.close();
      this.again();
    }, SILENCE);
  }

  set(state) {
    this.state = state;
    this.changed();
  }
}
