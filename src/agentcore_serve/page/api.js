// Requests to the server that this page came from. The browser adds the cookie; this script never sees a key.

const BASE = new URL("api/v1/", document.baseURI);

/** An answer that says no, with the sentence for people and the code for programs. */
export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export async function request(method, path, body) {
  let response;
  try {
    response = await fetch(new URL(path, BASE), {
      method,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, "unreachable", "The server cannot be reached.");
  }
  const isJson = response.headers.get("Content-Type")?.includes("json");
  const answer = isJson ? await response.json() : null;
  if (response.ok) return answer;
  const errors = (answer?.errors ?? []).map((error) => error.msg).join(" ");
  const detail = [answer?.detail ?? `The server answered ${response.status}.`, errors].join(" ").trim();
  throw new Problem(response.status, answer?.code ?? "unknown", detail);
}

export const get = (path) => request("GET", path);
export const at = (id, path = "") => `conversations/${encodeURIComponent(id)}${path}`;

/** Give a command. It has an id, so that a repeat after a cut is the same command. */
export async function command(id, path, body = {}) {
  const named = { id: freshId(), ...body };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await request("POST", at(id, path), named);
    } catch (error) {
      if (error.status !== 0 || attempt === 3) throw error;
      await new Promise((done) => setTimeout(done, 500 * attempt));
    }
  }
}

/** The bytes of a picture in a log, as an address of this page; null for what is not a picture that browsers show safely. */
export async function pictureUrl(id, blob, mediaType) {
  if (!PICTURES.includes(mediaType)) return null;
  const response = await fetch(new URL(at(id, `/blobs/${encodeURIComponent(blob)}`), BASE), { credentials: "same-origin" });
  if (!response.ok) return null;
  return URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: mediaType }));
}

export const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export function streamUrl(id, query) {
  const url = new URL(`${at(id, "/stream")}?${new URLSearchParams(query)}`, BASE);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url;
}

function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `cmd_${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
