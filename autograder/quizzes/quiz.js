// The browser's half of a quiz. A chosen option is explained at once, from the record that is sealed for its letter, and
// the letter is written into the cell of the answers above, so that the clicked option is the graded one. Letters typed
// there reach the quiz too. Without a kernel all of this still works; only the card for exported pages stays as it was.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function render({ model, el }) {
  const notebook = notebookOf(model);
  const score = make("div", { class: "aq-score", role: "status" });
  const root = make("div", { class: "aq-quiz", role: "group", "aria-label": "Quiz" }, score);
  const choose = (key, letter) => {
    if (model.get("answers")[key] === letter) return;
    model.set("answers", { ...model.get("answers"), [key]: letter });
    model.save_changes();
    notebook?.write(key, letter);
  };
  const heldBack = model.get("questions").every(({ records }) => Object.keys(records).length === 0);
  const shown = model.get("questions").map((question, index) => addQuestion(root, question, index + 1, choose));
  el.replaceChildren(root);

  const show = () => {
    const opened = shown.map((question) => question.show(model.get("answers")[question.key] ?? ""));
    const [right, answered] = [opened.filter((answer) => answer?.right), opened.filter(Boolean)];
    const open = opened.length - answered.length;
    score.textContent = heldBack
      ? `${answered.length} of ${opened.length} answered. Explained when it is graded.`
      : `${right.length} of ${opened.length} right${open ? `, ${open} to answer` : ""}`;
  };
  const settle = () => {
    // This redraws the quiz, which would lose the focus. A view that was replaced must not do it.
    if (root.isConnected && !document.activeElement?.closest(".aq-quiz")) notebook?.renew();
  };
  root.addEventListener("focusout", () => setTimeout(settle));
  model.on("change:answers", show);
  model.on("change:still", settle);
  const leave = notebook?.follow((answers) => {
    if (JSON.stringify(answers) === JSON.stringify(model.get("answers"))) return;
    model.set("answers", answers);
    model.save_changes();
  });
  show();
  return () => {
    model.off("change:answers", show);
    model.off("change:still", settle);
    leave?.();
  };
}

// A question with its options as a group of radio buttons: arrow keys move through them; the space bar, Enter or the
// letter chooses. Moving does not choose, since choosing tells whether it is right.
function addQuestion(root, { key, text, options, records }, number, choose) {
  const title = make("div", { class: "aq-text", id: `aq-${Math.random().toString(36).slice(2)}` });
  title.append(make("b", {}, `Question ${number}. `), ...formatted(text));
  const group = make("div", { role: "radiogroup", "aria-labelledby": title.id });
  const rows = Object.entries(options).map(([letter, option]) => {
    const words = make("span", { class: "aq-option" }, ...formatted(option));
    const mark = make("span", { class: "aq-mark" });
    const button = make("button", { type: "button", role: "radio", "data-letter": letter },
      make("span", { class: "aq-letter" }, letter), words, mark);
    button.addEventListener("click", () => choose(key, letter));
    return { letter, button, mark, why: make("div", { class: "aq-why", role: "status" }) };
  });
  for (const row of rows) group.append(row.button, row.why);
  group.addEventListener("keydown", (event) => {
    if (!isOwn(event)) return;
    const at = rows.findIndex((row) => row.button === document.activeElement);
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const named = rows.find((row) => row.letter === event.key.toLowerCase());
    if (by) rows[(at + by + rows.length) % rows.length].button.focus();
    else if (named) {
      named.button.focus();
      named.button.click();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  root.append(make("div", { class: "aq-question", "data-question": key }, title, group));

  const answerOf = (chosen) => {
    if (chosen in records) {
      const answer = opened(records[chosen], key, chosen);
      return { ...answer, verdict: answer.right ? "right" : "wrong" };
    }
    return chosen in options && Object.keys(records).length === 0 ? { verdict: "chosen", explanation: "" } : null;
  };
  const show = (chosen) => {
    const answer = answerOf(chosen);
    for (const [index, { letter, button, mark, why }] of rows.entries()) {
      const verdict = letter === chosen && answer ? answer.verdict : "";
      button.setAttribute("aria-checked", String(Boolean(verdict)));
      button.tabIndex = verdict || (!answer && index === 0) ? 0 : -1;
      button.dataset.verdict = why.dataset.verdict = mark.textContent = verdict;
      why.replaceChildren(...(verdict ? formatted(answer.explanation) : []));
    }
    return answer;
  };
  return { key, show };
}

// The notebook around the quiz: its model in JupyterLab and Notebook. Elsewhere it is null, and letters are typed.
function notebookOf(model) {
  const context = model.widget_manager?.context;
  if (!context?.model?.cells) return null;
  const id = model.get("own_id");
  const keys = model.get("questions").map((question) => question.key);
  const isOwn = (output) => output.data?.[VIEW]?.model_id === id;
  const own = () => [...context.model.cells].findIndex((cell) => cell.type === "code" && cell.outputs.toJSON().some(isOwn));
  const aboveOwn = () => [...context.model.cells].slice(0, Math.max(0, own())).reverse();
  const isAnswers = (cell) => cell.type === "code" && keys.some((key) => cell.sharedModel.getSource().includes(JSON.stringify(key)));
  const answerCell = () => aboveOwn().find(isAnswers);

  return {
    write(key, letter) {
      const cell = answerCell();
      const before = cell?.sharedModel.getSource();
      if (cell) cell.sharedModel.setSource(withLetter(before, key, letter));
    },
    follow(take) {
      const cell = answerCell();
      if (!cell) return () => {};
      if (model.get("folds")) fold(cell, aboveOwn());
      const read = () => {
        const source = cell.sharedModel.getSource();
        take(Object.fromEntries(keys.map((key) => [key, letterIn(source, key)])));
      };
      cell.contentChanged.connect(read);
      return () => cell.contentChanged.disconnect(read);
    },
    // The card in the output, for exported pages: as it would be if the cell were run now.
    renew() {
      const outputs = context.model.cells.get(own())?.outputs;
      const at = outputs?.toJSON().findIndex(isOwn) ?? -1;
      const still = model.get("still");
      if (at < 0 || !still["text/html"]) return;
      const output = outputs.get(at).toJSON();
      if (output.data["text/html"] === still["text/html"]) return;
      outputs.set(at, { ...output, data: { ...output.data, ...still } });
    },
  };

  // The typed form is folded away once, when the quiz has just been run; it opens with a click.
  function fold(cell, above) {
    const text = above[above.indexOf(cell) + 1];
    for (const part of text?.type === "markdown" ? [cell, text] : [cell]) {
      part.setMetadata("jupyter", { ...part.getMetadata("jupyter"), source_hidden: true });
    }
    model.set("folds", false);
    model.save_changes();
  }
}

const entryOf = (key) => new RegExp(`(${JSON.stringify(key).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}\\]?\\s*[:=]\\s*)(["'])([^"'\\n]*)\\2`, "g");

function letterIn(source, key) {
  const found = [...source.matchAll(entryOf(key))].pop();
  return found ? found[3].trim().toLowerCase() : "";
}

// The source with another letter for a question; if its line is gone, a new line sets it.
function withLetter(source, key, letter) {
  if (source.search(entryOf(key)) >= 0) return source.replace(entryOf(key), `$1$2${letter}$2`);
  const name = source.match(/^\s*(\w+)\s*=/)?.[1];
  return name ? `${source}\n${name}[${JSON.stringify(key)}] = "${letter}"` : source;
}

// Text between backquotes becomes code, text between stars emphasis. Nothing is read as HTML.
function formatted(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s](?:[^*]*[^*\s])?\*(?![\w*]))/).map((part, index) => {
    if (index % 2 === 0) return part;
    if (part.startsWith("`")) return make("code", {}, part.slice(1, -1));
    return part.startsWith("**") ? make("strong", {}, part.slice(2, -2)) : make("em", {}, part.slice(1, -1));
  });
}

// The record of a letter: combined with a stream of bytes that is made from the question and the letter (sealing.py).
function opened(record, key, letter) {
  const data = Uint8Array.from(atob(record), (character) => character.charCodeAt(0));
  for (let block = 0; block * 32 < data.length; block++) {
    const stream = sha256(new TextEncoder().encode(`${key}/${letter}/${block}`));
    for (let i = 0; i < 32 && block * 32 + i < data.length; i++) data[block * 32 + i] ^= stream[i];
  }
  return JSON.parse(new TextDecoder().decode(data));
}

// SHA-256 (FIPS 180-4). The browser's own is missing on pages served over plain http, as from a hub in a classroom.
const PRIMES = [...Array(312).keys()].filter((n) => n > 1 && ![...Array(n).keys()].some((d) => d > 1 && d * d <= n && n % d === 0));
const fraction = (x) => (x % 1) * 2 ** 32 | 0;
const ROUNDS = PRIMES.slice(0, 64).map((prime) => fraction(Math.cbrt(prime)));
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const turn = (x, by) => (x >>> by) | (x << (32 - by));

function sha256(message) {
  const blocks = Math.ceil((message.length + 9) / 64);
  const padded = new DataView(new ArrayBuffer(64 * blocks));
  message.forEach((byte, i) => padded.setUint8(i, byte));
  padded.setUint8(message.length, 0x80);
  padded.setUint32(64 * blocks - 4, 8 * message.length);
  const hash = [...START];
  for (let block = 0; block < blocks; block++) {
    const w = Array.from({ length: 16 }, (_, i) => padded.getInt32(64 * block + 4 * i));
    for (let i = 16; i < 64; i++) {
      const [a, b] = [w[i - 15], w[i - 2]];
      const [s, t] = [turn(a, 7) ^ turn(a, 18) ^ (a >>> 3), turn(b, 17) ^ turn(b, 19) ^ (b >>> 10)];
      w[i] = (w[i - 16] + s + w[i - 7] + t) | 0;
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i++) {
      const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (hash[i] = (hash[i] + word) | 0));
  }
  const bytes = new DataView(new ArrayBuffer(32));
  hash.forEach((word, i) => bytes.setInt32(4 * i, word));
  return new Uint8Array(bytes.buffer);
}

export default { initialize, render };
