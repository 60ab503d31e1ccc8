// Runs before the page in a frame and removes what no policy blocks: peer connections, nested frames (which would
// have them again), and navigation. It keeps its own references, so that the page cannot disable it. Outside a
// frame, it stops the page.
(() => {
  if (window.top === window) return window.stop();
  const { apply, defineProperty, getOwnPropertyNames } = Object.assign(Object.create(null), { apply: Reflect.apply, defineProperty: Object.defineProperty, getOwnPropertyNames: Object.getOwnPropertyNames });
  const gone = (of, name) => defineProperty(of, name, { value: undefined, writable: false, configurable: false });
  const set = (of, name, value) => defineProperty(of, name, { value, writable: false, configurable: false });
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection", "RTCDataChannel", "WebTransport"]) gone(window, name);
  const makers = [Element, ShadowRoot, Document].flatMap((one) => [one, one.prototype]);
  for (const of of makers) for (const name of getOwnPropertyNames(of)) if (/HTMLUnsafe$/.test(name)) gone(of, name);

  const all = { doc: Document.prototype.querySelectorAll, part: DocumentFragment.prototype.querySelectorAll };
  const remove = Element.prototype.remove;
  const length = Object.getOwnPropertyDescriptor(NodeList.prototype, "length").get;
  const Observer = MutationObserver;
  const observe = MutationObserver.prototype.observe;
  const watch = (root, query) => {
    const clear = () => {
      const nodes = apply(query, root, ["iframe, frame, object, embed, fencedframe, portal, link[rel~=preconnect i], link[rel~=dns-prefetch i]"]);
      const n = apply(length, nodes, []);
      for (let at = 0; at < n; at += 1) apply(remove, nodes[at], []);
    };
    apply(observe, new Observer(clear), [root, { childList: true, subtree: true }]);
  };
  watch(document, all.doc);
  const attach = Element.prototype.attachShadow;
  set(Element.prototype, "attachShadow", function attachShadow(options) {
    const root = apply(attach, this, [{ mode: options?.mode, delegatesFocus: Boolean(options?.delegatesFocus), slotAssignment: options?.slotAssignment ?? "named", clonable: false }]);
    watch(root, all.part);
    return root;
  });
  const insert = Element.prototype.insertAdjacentHTML;
  const write = (...texts) => {
    const at = document.currentScript;
    if (at) apply(insert, at, ["beforebegin", texts.join("")]);
  };
  for (const of of [Document.prototype, document]) {
    set(of, "write", write);
    set(of, "writeln", write);
    set(of, "open", () => document);
  }
  window.navigation?.addEventListener("navigate", (event) => event.cancelable && !event.hashChange && event.preventDefault());
})();
