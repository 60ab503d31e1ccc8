// Builds elements from data, never from markup, so that text by models only becomes text nodes.

export const boot = JSON.parse(document.getElementById("boot").textContent);

/** Returns a number with a comma between thousands, as the server writes it. */
export const count = new Intl.NumberFormat("en-US", { maximumFractionDigits: 20 }).format;

/** Returns the text of a key with its placeholders filled in; the `.one` form if n is 1. */
export function t(key, values = {}) {
  const one = values.n === 1 ? boot.texts[`${key}.one`] : undefined;
  const text = one ?? boot.texts[key];
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? (typeof values[name] === "number" ? count(values[name]) : String(values[name])) : whole));
}

/** Creates an element. `attributes.on` holds listeners; children are nodes, texts, arrays of these, or null. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (!isThere(value)) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name.startsWith("on") || name === "style" || name === "srcdoc") throw new Error(`attribute ${name}`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

const isThere = (child) => child !== null && child !== undefined && child !== false;

export const byId = (id) => document.getElementById(id);

// Bidirectional marks, joiners, invisible and control characters, which can deceive readers and judges.
const DECEIVING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\u{e0000}-\u{e007f}]/u;
const EACH = new RegExp(DECEIVING.source, "gu");

/** Returns the text with such characters made visible. */
export function visible(text) {
  if (!DECEIVING.test(text)) return [text];
  const parts = [];
  let rest = 0;
  for (const match of text.matchAll(EACH)) {
    if (match.index > rest) parts.push(text.slice(rest, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(h("span", { class: "deceiving" }, `U+${code}`));
    rest = match.index + match[0].length;
  }
  parts.push(text.slice(rest));
  return parts;
}

/** Creates a button; `more` holds further attributes. */
export const button = (kind, run, more, ...children) => h("button", { type: "button", class: kind, on: { click: run }, ...more }, children);

export const quoteButton = (text, run, lines = "") => button("quote", run, {}, h("code", {}, visible(text)), lines);

/** Creates a decorative mark, hidden from screen readers. */
export const glyph = (sign, state = "") => h("span", { class: `glyph ${state}`.trim(), "aria-hidden": "true" }, sign);

/** Replaces the children of an element; null children are skipped. */
export const fill = (element, ...children) => element.replaceChildren(...children.flat(Infinity).filter(isThere));

/** Requests JSON from the server; throws an Error with `status` 0 if the response is missing or incomplete. */
export async function call(path, body, options = {}) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers: { "assay-store": boot.store, "content-type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw Object.assign(new Error(document.body.dataset.offline), { status: 0, cause });
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const error = answer?.error ?? { problem: response.statusText || String(response.status), where: "", remedy: "" };
  throw Object.assign(new Error(error.problem), { status: response.ok ? 0 : response.status, said: error });
}

/** Returns a promise that resolves after the current changes have been painted. */
export function painted() {
  return new Promise((resolve) => {
    if (document.hidden) return setTimeout(resolve, 0); // hidden pages paint nothing
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
  });
}

/** Local storage; if it is missing or full, values stay in memory. `kept` is true if all are stored. */
export const storage = {
  memory: new Map(),
  get kept() {
    return !this.memory.size;
  },
  get(key, otherwise) {
    try {
      const text = this.memory.get(key) ?? localStorage.getItem(key); // a write that failed left the old value there
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  },
  set(key, value) {
    const text = JSON.stringify(value);
    try {
      localStorage.setItem(key, text);
      this.memory.delete(key);
    } catch {
      this.memory.set(key, text);
    }
  },
  /** Returns the sorted keys with this prefix. */
  keys(start) {
    let kept = [];
    try {
      kept = Object.keys(localStorage);
    } catch {
      /* all values are in memory */
    }
    return [...new Set([...kept, ...this.memory.keys()])].filter((key) => key.startsWith(start)).sort();
  },
  remove(key) {
    this.memory.delete(key);
    try {
      localStorage.removeItem(key);
    } catch {
      /* nothing was stored there */
    }
  },
};

/** Returns a unique id; `crypto.randomUUID` is missing on plain http from other machines. */
export function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
