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

// Ask for a prediction: buttons to choose from, or an entry. Skipping gives an empty text.
function askForPrediction(box, question, options, commit) {
  const words = document.createElement("p");
  words.textContent = question;
  const button = (name, give) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = name;
    made.setAttribute("data-lm-suppress-shortcuts", "true");
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
  entry.setAttribute("data-lm-suppress-shortcuts", "true");
  const give = () => (entry.value.trim() ? commit(entry.value.trim()) : entry.focus());
  entry.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the notebook also uses the arrow keys and Enter
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would press the button that gets the focus next
    give();
  });
  box.replaceChildren(words, entry, button("Predict", give), skip);
}
