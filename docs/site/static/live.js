// Brings the widgets of a page to life without Python: their code is the notebook's, their data lies in the page.

function modelOf(traits) {
  const listeners = {};
  const tell = (name) => (listeners[`change:${name}`] ?? []).slice().forEach((listener) => listener());
  const write = (name, value) => {
    if (JSON.stringify(traits[name]) === JSON.stringify(value)) return;
    traits[name] = value;
    tell(name);
  };
  const key = (state) => JSON.stringify(Object.entries(state).sort());
  return {
    get: (name) => traits[name],
    set(name, value) {
      const found = name === "state" && traits.answers?.find(([state]) => key(state) === key(value));
      if (name === "state" && traits.answers && !found) return setTimeout(() => tell("shown")); // needs Python: it stays
      write(name, value);
      if (found) setTimeout(() => write("shown", { ...found[1], serial: (traits.shown.serial ?? 0) + 1 }));
    },
    save_changes() {},
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => (listeners[name] = (listeners[name] ?? []).filter((other) => other !== listener)),
  };
}

// It tells an explorer that no Python answers here, so that the explorer hides what only Python can do. A demo is not told:
// the answers to its buttons lie in the page.
const NO_KERNEL = { comm_live: false, on() {}, off() {} };

function bringToLife(place) {
  const traits = JSON.parse(place.querySelector("script").textContent);
  const model = modelOf(traits);
  if (place.dataset.kind === "explorer") {
    traits.own_id = "on this page";
    model.widget_manager = { get_model: async () => NO_KERNEL };
  }
  const el = document.createElement("div");
  liveWidgets[place.dataset.kind].render({ model, el });
  place.replaceChildren(el);
}

// The widgets ask the page whether it is light, as JupyterLab says it.
function sayTheme() {
  const chosen = document.body.dataset.theme;
  const dark = chosen === "dark" || (chosen !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.dataset.jpThemeLight = String(!dark);
}

// From a file, a page cannot read others, and search shows titles without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// Nor can the lab: browsers run its Python only on pages that a server sends.
function sayWhatTheLabNeeds(link) {
  link.after(" (if the folder of this website is served: python -m http.server)");
}

document.addEventListener("DOMContentLoaded", () => {
  sayTheme();
  new MutationObserver(sayTheme).observe(document.body, { attributeFilter: ["data-theme"] });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", sayTheme);
  document.querySelectorAll(".live").forEach(bringToLife);
  if (location.protocol === "file:") document.querySelectorAll("a.lab").forEach(sayWhatTheLabNeeds);
  const wide = "pre, .table-wrapper, div.shown, .ma-demo .ma-canvas";
  for (const block of document.querySelectorAll(wide)) block.tabIndex = 0; // to scroll by keyboard
});
