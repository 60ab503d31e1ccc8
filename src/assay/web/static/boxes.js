// Decisions in this browser that are not in this store's box: fetched where there are any.
//
// Boxes of other stores stay as they are. Before each store had a box there was one for all: of that, a decision that names
// a run of this store moves into this store's box; one that names none moves only if the person says so.

import { button, call, storage, t } from "./dom.js";
import { BOX } from "./outbox.js";

const ONCE_FOR_ALL = "assay.outbox.1";
const NAMED = 3;

export async function look(outbox, say) {
  const run = () => adopt(outbox);
  await (navigator.locks ? navigator.locks.request("assay-outbox", run) : run());
  outbox.pump();
  const nameless = storage.get(ONCE_FOR_ALL, []).filter((entry) => !entry.run);
  const others = storage.keys().filter((key) => key.startsWith("assay.outbox") && key !== BOX).flatMap((key) => storage.get(key, []));
  if (nameless.length) {
    const send = () => {
      take(outbox, nameless);
      say("");
    };
    const list = nameless.slice(0, NAMED).map((entry) => entry.what).join(", ") + (nameless.length > NAMED ? " …" : "");
    say(t("said.nameless", { n: nameless.length, list }), { alert: true, action: button("link", send, {}, t("said.nameless_send")) });
  } else if (others.length) say(t("said.others", { n: others.length }));
}

/** Take over what was decided in a run of this store. */
async function adopt(outbox) {
  const entries = storage.get(ONCE_FOR_ALL, []);
  const here = new Map();
  for (const { run } of entries) if (run && !here.has(run)) here.set(run, await isHere(run));
  take(outbox, entries.filter((entry) => here.get(entry.run)));
}

async function isHere(run) {
  try {
    return (await call(`/api/runs/${encodeURIComponent(run)}?limit=1`)).run.id === run;
  } catch {
    return false; // it is looked for again the next time
  }
}

function take(outbox, entries) {
  const keys = new Set(entries.map((entry) => entry.key));
  outbox.add(...entries.map((entry) => ({ ...entry, run: entry.run ?? undefined })));
  const left = storage.get(ONCE_FOR_ALL, []).filter((entry) => !keys.has(entry.key));
  if (left.length) storage.set(ONCE_FOR_ALL, left);
  else storage.remove(ONCE_FOR_ALL);
}
