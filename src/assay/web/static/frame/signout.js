// Ends the session of this browser, on the server too.

import { byId, call } from "./dom.js";

byId("signout").addEventListener("click", async () => {
  await call("/api/signout", {});
  location.assign("/signin");
});
