// Answers imported without grades: shows the cost of judging them, and starts the run that grades them.

import { money } from "../frame/amounts.js";
import { byId, call, t } from "../frame/dom.js";

const form = byId("ungraded");
const status = byId("ungraded-said");

function tell(text, wrong = false) {
  status.className = wrong ? "said small error" : "said small";
  status.textContent = text;
}

async function regrade(judge, onlyLook) {
  const run = form.dataset.of;
  const buttons = form.querySelectorAll("button");
  if (!judge) {
    tell(t("ungraded.need_judge"), true);
    return byId("judge").focus();
  }
  for (const button of buttons) button.disabled = true;
  try {
    const answer = await call(`/api/runs/${encodeURIComponent(run)}/regrade`, { judge, only_look: onlyLook });
    if (!onlyLook) return location.assign(`/runs/${encodeURIComponent(answer.run_id)}`);
    const { calls, likely_usd: likely, most_usd: most, unpriced } = answer.estimate;
    const cost = unpriced.length || likely === null ? t("steer.unpriced") : t("steer.cost", { likely: money(likely), most: money(most) });
    tell([t("ungraded.asked", { n: calls, cost }), ...answer.notes].join(" "));
  } catch (error) {
    tell([error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" "), true);
  }
  for (const button of buttons) button.disabled = false;
}

const named = () => byId("judge").value.trim();
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  regrade(named(), false);
});
byId("ungraded-look")?.addEventListener("click", () => regrade(named(), true));
byId("ungraded-people")?.addEventListener("click", () => regrade("human", false));
