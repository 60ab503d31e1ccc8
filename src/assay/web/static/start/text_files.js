// Reads plain and Markdown texts as a set: whose answers they are and to which question, from folders, file names or headings.

const TEXT = /\.(md|markdown|txt|text)$/i;
const stem = (path) => path.split("/").at(-1).replace(/\.[^.]+$/, "");
const folder = (path) => path.split("/").slice(0, -1).at(-1) ?? "";
const unique = (items) => [...new Set(items)];
const plain = (title) => title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

/** True if a file holds text that an editor may take over. */
export const isText = (name) => TEXT.test(name);

/** Returns the sections of a Markdown text at one level of headings; `#` inside code fences are no headings. */
function sections(text, level) {
  const mark = new RegExp(`^#{${level}}\\s+(.*?)\\s*#*\\s*$`);
  const parts = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const opens = line.match(/^\s*(\x60{3,}|~{3,})/)?.[1] ?? "";
    if (opens && (!fence || line.trim().startsWith(fence))) fence = fence ? "" : opens;
    const title = fence ? null : line.match(mark)?.[1];
    if (title) parts.push({ title, lines: [] });
    else parts.at(-1)?.lines.push(line);
  }
  return parts.map(({ title, lines }) => ({ title, text: lines.join("\n").trim() })).filter((part) => part.text);
}

/** Returns cells {who, what, text} if each file is the answer of a folder's candidate. */
function byFolder(files) {
  const whos = unique(files.map((file) => folder(file.name)));
  const whats = unique(files.map((file) => stem(file.name)));
  if (whos.length < 2 || whos.length * whats.length > 2 * files.length) return null;
  return files.map((file) => ({ who: folder(file.name), what: stem(file.name), text: file.text }));
}

/** Returns cells if names such as `q1-short.md` hold the question and the candidate, in either order. */
function byName(files) {
  for (const separator of ["--", "__", ".", "-", "_", " "]) {
    const pairs = files.map((file) => {
      const parts = stem(file.name).split(separator);
      return { first: parts[0], rest: parts.slice(1).join(separator), begin: parts.slice(0, -1).join(separator), last: parts.at(-1), text: file.text };
    });
    for (const [who, what] of [["last", "begin"], ["first", "rest"]]) {
      const whos = unique(pairs.map((pair) => pair[who]));
      const whats = unique(pairs.map((pair) => pair[what]));
      const full = pairs.every((pair) => pair[who] && pair[what]) && whos.length * whats.length === files.length;
      if (full && whos.length > 1 && whats.length > 1 && whos.length <= 20) return pairs.map((pair) => ({ who: pair[who], what: pair[what], text: pair.text }));
    }
  }
  return null;
}

/** Returns cells if all files have the same headings, or as many; then the sections belong together by place. */
function byHeading(files) {
  for (const level of [1, 2, 3]) {
    const parts = files.map((file) => sections(file.text, level));
    const known = new Map(parts[0].map((part) => [plain(part.title), part.title]));
    const shared = parts.slice(1).every((each) => each.filter((part) => known.has(plain(part.title))).length >= 2);
    const even = parts[0].length >= 2 && parts.every((each) => each.length === parts[0].length);
    if (parts[0].length < 2 || !(shared || even)) continue;
    return files.flatMap((file, place) => parts[place].map((part, at) => ({
      who: stem(file.name), text: part.text, what: shared ? known.get(plain(part.title)) ?? part.title : parts[0][at].title,
    })));
  }
  return null;
}

/** Returns a set for the editor from at least two texts; each file alone is one candidate's answer to one question. */
export function setOfTexts(files) {
  const cells = byFolder(files) ?? byHeading(files) ?? byName(files) ?? files.map((file) => ({ who: stem(file.name), what: "", text: file.text }));
  const names = unique(cells.map((cell) => cell.who));
  const things = unique(cells.map((cell) => cell.what)).map((what) => ({
    thingName: what,
    context: "",
    snippets: Object.fromEntries(names.map((name, place) => [place, cells.find((cell) => cell.who === name && cell.what === what)?.text ?? ""])),
  }));
  return { name: names.join(" and ").slice(0, 80), language: "", names, things };
}
