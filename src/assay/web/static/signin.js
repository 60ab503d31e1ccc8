// The way in with a token.

import "./page.js";
import { byId, call, t } from "./dom.js";

byId("signin-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await call("/api/signin", { token: byId("token").value });
    location.assign("/");
  } catch {
    byId("signin-error").textContent = t("signin.wrong");
    byId("token").select();
  }
});
