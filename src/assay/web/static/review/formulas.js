// Draws TeX formulas as MathML of the browser. A command that is not listed stays as it was written.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const SIGNS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ", iota: "ι", kappa: "κ",
  lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", varphi: "φ", chi: "χ", psi: "ψ", omega: "ω",
  Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ", Phi: "Φ", Psi: "Ψ", Omega: "Ω", infty: "∞", partial: "∂",
  nabla: "∇", ell: "ℓ", hbar: "ℏ", emptyset: "∅", times: "×", cdot: "·", div: "÷", pm: "±", mp: "∓", le: "≤", leq: "≤", ge: "≥", geq: "≥",
  ne: "≠", neq: "≠", approx: "≈", equiv: "≡", sim: "∼", propto: "∝", in: "∈", notin: "∉", subset: "⊂", subseteq: "⊆", cup: "∪", cap: "∩",
  to: "→", rightarrow: "→", Rightarrow: "⇒", implies: "⇒", iff: "⇔", leftarrow: "←", mapsto: "↦", forall: "∀", exists: "∃", land: "∧",
  lor: "∨", neg: "¬", sum: "∑", prod: "∏", int: "∫", ldots: "…", dots: "…", cdots: "⋯", langle: "⟨", rangle: "⟩", mid: "|", circ: "∘",
  degree: "°", angle: "∠", perp: "⊥", parallel: "∥", ll: "≪", gg: "≫", "{": "{", "}": "}", "%": "%", "$": "$", "&": "&", "#": "#", _: "_",
};
const NAMES = new Set("sin cos tan cot log ln exp lim max min sup inf det dim gcd arg mod".split(" "));
const GAPS = new Set([",", ";", ":", " ", "!", "quad", "qquad", "right", "big", "Big", "bigl", "bigr", "displaystyle", "limits"]);
const WORDS = new Set(["text", "mathrm", "operatorname", "textbf", "mathbf", "mathit", "mathcal", "mathbb", "boxed", "textit"]);

const DEEPEST = 30;

/** Creates the element of a formula; `block` stands on a line of its own. */
export function formula(tex, block) {
  const pieces = tex.match(/\\[a-zA-Z]+|\\.|\d+(?:[.,]\d+)*|\s+|[^\s]/gsu) ?? [];
  const state = { pieces, at: 0, depth: 0 };
  const math = make("math", row(state, null));
  if (block) math.setAttribute("display", "block");
  math.setAttribute("aria-label", tex);
  return math;
}

function make(tag, ...children) {
  const element = document.createElementNS(SPACE, tag);
  element.append(...children.flat());
  return element;
}

/** Reads pieces up to a closing one. */
function row(state, close) {
  const made = [];
  while (state.at < state.pieces.length && state.pieces[state.at] !== close) {
    const piece = state.pieces[state.at];
    if (piece === "^" || piece === "_") {
      state.at += 1;
      const base = made.pop() ?? make("mrow");
      const script = atom(state);
      const tall = base.dataset?.[piece === "^" ? "below" : "above"];
      const scripts = piece === "^" ? [base.lastChild, script] : [script, base.lastChild];
      made.push(tall ? make("msubsup", base.firstChild, ...scripts) : make(piece === "^" ? "msup" : "msub", base, script));
      if (!tall) made.at(-1).dataset[piece === "^" ? "above" : "below"] = "1";
    } else {
      const next = atom(state);
      if (next) made.push(next);
    }
  }
  state.at += 1;
  return made;
}

/** Reads one piece, a group, or a command with its arguments; null for a space. */
function atom(state) {
  const piece = state.pieces[state.at];
  state.at += 1;
  if (piece === undefined) return make("mrow");
  if (/^\s/.test(piece)) return state.pieces[state.at - 2] === "^" || state.pieces[state.at - 2] === "_" ? atom(state) : null;
  if (piece === "{" && state.depth < DEEPEST) {
    state.depth += 1;
    const group = make("mrow", row(state, "}"));
    state.depth -= 1;
    return group;
  }
  if (/^\d/.test(piece)) return make("mn", piece);
  if (!piece.startsWith("\\")) return make(/\p{L}/u.test(piece) ? "mi" : "mo", piece);
  const name = piece.slice(1);
  if (GAPS.has(name)) return name === "quad" || name === "qquad" ? make("mtext", "\u2003") : null;
  if (name === "left") {
    const open = delimiter(state);
    const inside = row(state, "\\right");
    return make("mrow", open, inside, delimiter(state));
  }
  if (name === "frac" || name === "dfrac" || name === "tfrac") return make("mfrac", argument(state), argument(state));
  if (name === "sqrt") return make("msqrt", argument(state));
  if (name === "bar" || name === "overline" || name === "hat" || name === "vec") return make("mover", argument(state), make("mo", { hat: "^", vec: "→" }[name] ?? "¯"));
  if (WORDS.has(name)) return make("mtext", words(state));
  if (NAMES.has(name)) return make("mi", name);
  if (name === "\\") return make("mtext", " ; ");
  const sign = SIGNS[name];
  return sign ? make(/\p{L}/u.test(sign) ? "mi" : "mo", sign) : make("mtext", piece);
}

const delimiter = (state) => (state.pieces[state.at] === "." ? (state.at += 1, []) : atom(state) ?? []);
const argument = (state) => atom(state) ?? argument(state);

/** Reads a group as words. */
function words(state) {
  if (state.pieces[state.at] !== "{") return state.pieces[state.at++] ?? "";
  let depth = 0;
  let text = "";
  do {
    const piece = state.pieces[state.at++] ?? "}";
    depth += (piece === "{") - (piece === "}");
    if (piece !== "{" && piece !== "}") text += piece;
  } while (depth > 0 && state.at < state.pieces.length);
  return text;
}
