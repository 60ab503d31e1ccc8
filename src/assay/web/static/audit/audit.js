// Checks the hash chain part by part without reloading the page, until its end or a broken event.

import "../frame/page.js";
import { byId, call, t } from "../frame/dom.js";

const form = byId("check");
const status = byId("checked");

async function checked() {
  let n = 0;
  let after = 0;
  for (;;) {
    const part = await call(`/audit/check.json?after=${after}`).catch(() => null);
    if (part === null) return tell("audit.check_failed", { up_to: after });
    if (part.first_broken_event !== null) return tell("audit.broken", { broken: part.first_broken_event });
    n += part.checked;
    after = part.intact_up_to;
    if (part.ended) return tell("audit.intact", { n, up_to: after });
    tell("audit.checking", { n, up_to: after });
  }
}

function tell(key, values) {
  status.textContent = t(key, values);
  status.classList.toggle("bad", key === "audit.broken");
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  if (button.disabled) return;
  button.disabled = true;
  try {
    await checked();
  } finally {
    button.disabled = false;
    button.textContent = t("audit.check_again");
    button.focus();
  }
});
