// Signs in with a token, then opens the requested page. A link from another place leaves its token behind `#` and is asked about first.

import "./page.js";
import { byId, call, t } from "./dom.js";

const link = new URLSearchParams(location.hash.slice(1)).get("token");
if (link) {
  history.replaceState(null, "", location.pathname + location.search);
  byId("token").value = link;
  byId("signin-link").hidden = false;
  byId("signin-lead").hidden = true;
}

byId("signin-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const { home } = await call("/api/signin", { token: byId("token").value });
    const next = new URL(new URLSearchParams(location.search).get("next") ?? home, location.origin);
    location.assign(next.origin === location.origin ? next : home);
  } catch (error) {
    byId("signin-error").textContent = error.status === 429 ? t("signin.often") : t("signin.refused", { problem: error.message, remedy: error.said?.remedy ?? "" });
    byId("token").select();
  }
});
