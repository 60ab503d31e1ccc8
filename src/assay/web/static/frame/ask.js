// Asks before an act that is hard to take back.

import { button, h } from "./dom.js";

/** Shows a dialog and resolves to true if the act was chosen. */
export function ask({ title, text, act, keep }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "panel", "aria-labelledby": "ask-title" });
    const close = (answer) => {
      dialog.returnValue = answer;
      dialog.close();
    };
    dialog.append(
      h("h2", { id: "ask-title" }, title),
      h("p", {}, text),
      h("div", { class: "buttons" }, button("go", () => close("act"), {}, act), button("", () => close(""), {}, keep)),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "act");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
