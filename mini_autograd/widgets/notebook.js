// Common code that connects all our widgets to the notebook, put before the code of each. It keeps them in the notebook
// file for when no kernel knows them, shows them even if the page was too slow to find them, and tells them whether
// Python still answers.

const VIEW = "application/vnd.jupyter.widget-view+json";
const STATE = "application/vnd.jupyter.widget-state+json";

// JupyterLab's widget manager waits two seconds for the model of a view. If a slow page restores the model in the last
// tenth of these two seconds, it says "model not found" forever, although the model is there. So the view is requested
// again when the two seconds are certainly over (get_model in @jupyter-widgets/base-manager).
const WAITED = 3000; // milliseconds
const GIVEN_UP = "model not found";

// For each model, once, whether or not it is in view. In editors other than JupyterLab and Notebook there is no context.
function initialize({ model }) {
  const context = model.widget_manager?.context;
  if (!context?.model?.cells) return undefined;
  let full = null; // the model with all its parts; a widget is given only the traits
  const meet = async () => {
    if (model.get("own_id")) full = await model.widget_manager.get_model(model.get("own_id"));
  };
  const save = (_, phase) => {
    if (phase === "started" && full) keep(full, context);
  };
  const showIfMissing = () => {
    if (context.isDisposed) return; // the notebook has been closed in the meantime
    const [outputs, at] = placeOf(model.get("own_id"), context);
    const failed = [...document.querySelectorAll(".jupyter-widgets")].some((node) => node.textContent.includes(GIVEN_UP));
    if (failed && at >= 0 && Object.keys(full?.views ?? {}).length === 0) outputs.set(at, outputs.get(at).toJSON());
  };
  const asking = setTimeout(showIfMissing, WAITED);
  model.on("change:own_id", meet);
  context.saveState.connect(save);
  meet();
  return () => {
    clearTimeout(asking);
    model.off("change:own_id", meet);
    context.saveState.disconnect(save);
  };
}

// The outputs of the cell that shows a model, and the place of the model among them, or -1.
function placeOf(id, context) {
  for (const cell of context.model.cells) {
    const at = cell.type === "code" ? cell.outputs.toJSON().findIndex((output) => output.data?.[VIEW]?.model_id === id) : -1;
    if (at >= 0) return [cell.outputs, at];
  }
  return [null, -1];
}

// Write a model into the notebook's metadata, where JupyterLab looks for widgets that no kernel knows anymore; remove
// it if no cell shows it.
function keep(full, context) {
  const saved = context.model.getMetadata("widgets")?.[STATE] ?? { version_major: 2, version_minor: 0, state: {} };
  const states = { ...saved.state };
  const shown = placeOf(full.model_id, context)[1] >= 0;
  for (const part of [full, full.get("layout")]) {
    delete states[part.model_id];
    if (!shown) continue;
    const state = JSON.parse(JSON.stringify(part.serialize(part.get_state(true))));
    const version = part.get("_model_module_version");
    states[part.model_id] = { model_name: part.name, model_module: part.module, model_module_version: version, state };
  }
  if (JSON.stringify(states) === JSON.stringify(saved.state)) return;
  context.model.setMetadata("widgets", { ...context.model.getMetadata("widgets"), [STATE]: { ...saved, state: states } });
}

// Tell a view whether Python answers it, now and when that changes. Returns a function that stops this.
function followKernel(model, tell) {
  let full = null;
  let left = false;
  const show = () => tell(full.comm_live);
  const meet = async () => {
    full = await model.widget_manager.get_model(model.get("own_id"));
    if (left) return;
    full.on("comm_live_update", show);
    show();
  };
  if (model.get("own_id") && model.widget_manager) meet();
  return () => {
    left = true;
    full?.off("comm_live_update", show);
  };
}

// Keys. JupyterLab acts on each key that is pressed outside an editor, unless the focused element has the attribute below.
// In our widgets it has it only for keys of their own: plain ones, since a slip would else cut or move a cell, and those that
// edit a text field. To save, to run, the command palette and so on stay JupyterLab's; Escape leads back to the cell.
const KEEPS = "data-lm-suppress-shortcuts";
const WIDGETS = ".ma-demo, .ma-explorer, .aq-quiz";
const FIELDS = "input:is([type=text], [type=search], [type=number])";
const EDITING = /^([acvxyzZ]|Arrow.*|Home|End|Backspace|Delete)$/;

function isOwn(event) {
  const modified = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");
  if (event.key === "Escape" || /^F\d+$/.test(event.key)) return false;
  if (event.key === "Enter") return !modified && !event.shiftKey;
  return !modified || (event.target.matches(FIELDS) && EDITING.test(event.key));
}

function share(event) {
  if (!event.target.closest?.(WIDGETS)) return;
  event.target.toggleAttribute(KEEPS, isOwn(event));
  if (!isOwn(event) && event.target.matches(FIELDS)) event.target.dispatchEvent(new Event("change")); // save what is typed
}

function leaveToCell(event) {
  const cell = event.key === "Escape" && event.target.closest?.(WIDGETS)?.closest(".jp-Cell");
  if (cell) (cell.tabIndex >= 0 ? cell : cell.closest(".jp-Notebook")).focus({ preventScroll: true });
}

if (!window.keysAreShared) {
  window.keysAreShared = true; // each widget loads this file for itself
  window.addEventListener("keydown", share, true); // before JupyterLab
  window.addEventListener("keydown", leaveToCell); // an element that uses Escape stops it
}

// A number, or numbers with + - * / ** and parentheses between them; null for anything else.
function numberIn(text) {
  const plain = text.replaceAll("\u2212", "-").replaceAll("\u00d7", "*").replaceAll("^", "**").replaceAll(",", ".");
  const parts = plain.match(/\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|\*\*|[-+*/()]|\S/gi) ?? [];
  const take = (...signs) => (signs.includes(parts[0]) ? parts.shift() : null);
  const chain = (one, signs) => {
    let value = one();
    for (let sign = take(...signs); sign; sign = take(...signs)) {
      const other = one();
      value = { "+": value + other, "-": value - other, "*": value * other, "/": value / other }[sign];
    }
    return value;
  };
  const sum = () => chain(() => chain(signed, ["*", "/"]), ["+", "-"]);
  const signed = () => (take("-") ? -signed() : take("+") ? signed() : power());
  const power = () => {
    const base = single();
    return take("**") ? base ** signed() : base;
  };
  const single = () => {
    if (!take("(")) return Number(parts.shift());
    const value = sum();
    return take(")") ? value : NaN;
  };
  const value = sum();
  return parts.length === 0 && Number.isFinite(value) ? value : null;
}

// The smallest type in a picture, in the picture's own units; `none` if it has no text. Only a picture that says the size
// of each text itself can be asked before it is in the page.
function finest(svg, none) {
  const size = (text) => text.style.fontSize || text.getAttribute("font-size") || getComputedStyle(text).fontSize;
  const sizes = [...svg.querySelectorAll("text")].map((text) => parseFloat(size(text)));
  return sizes.length ? Math.min(...sizes) : none;
}

// A sign for readers that Python is busy, shown once they have waited for a fifth of a second.
const PATIENT = 200; // milliseconds

function makeBusy(root) {
  const sign = document.createElement("span");
  sign.className = "ma-busy";
  sign.setAttribute("role", "status");
  let timer = null;
  return {
    sign,
    start() {
      timer ??= setTimeout(() => {
        sign.textContent = "Python is computing\u2026";
        root.setAttribute("aria-busy", "true");
      }, PATIENT);
    },
    stop() {
      clearTimeout(timer);
      timer = null;
      sign.textContent = "";
      root.removeAttribute("aria-busy");
    },
  };
}

// Send settings to Python, one at a time. While Python is busy, only the latest one waits.
function makeSender(model, trait, busy) {
  let sent = false;
  let waiting = null;
  const send = (setting) => {
    sent = true;
    busy.start();
    model.set(trait, setting);
    model.save_changes();
  };
  return {
    change(part) {
      const setting = { ...(waiting ?? model.get(trait)), ...part };
      if (JSON.stringify(setting) === JSON.stringify(model.get(trait))) return;
      if (sent) waiting = setting;
      else send(setting);
    },
    answered() {
      sent = false;
      busy.stop();
      const next = waiting;
      waiting = null;
      if (next) send(next);
    },
  };
}

// On a narrow page a small graph stands upright.
const NARROW = 600; // pixels
const isNarrow = (canvas) => canvas.clientWidth > 0 && canvas.clientWidth < NARROW;

// An element with a text, in which code stands between backquotes.
function worded(tag, text) {
  const element = document.createElement(tag);
  text.split("`").forEach((part, place) => {
    const code = document.createElement("code");
    code.textContent = part;
    element.append(place % 2 ? code : part);
  });
  return element;
}

// Ask for a prediction: buttons to choose from, or an entry. Skipping gives an empty text.
function askForPrediction(box, question, options, commit) {
  const words = worded("p", question);
  const button = (name, give) => {
    const made = worded("button", name);
    made.type = "button";
    made.addEventListener("click", give);
    return made;
  };
  const skip = button("Skip", () => commit(""));
  if (options.length > 0) return box.replaceChildren(words, ...options.map((option) => button(option, () => commit(option))), skip);
  const entry = document.createElement("input");
  entry.type = "text";
  entry.size = 32;
  entry.setAttribute("aria-label", "Your prediction");
  entry.setAttribute("autocomplete", "off");
  const give = () => (entry.value.trim() ? commit(entry.value.trim()) : entry.focus());
  entry.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !isOwn(event)) return;
    event.preventDefault(); // it would press the button that gets the focus next
    give();
  });
  box.replaceChildren(words, entry, button("Predict", give), skip);
}
