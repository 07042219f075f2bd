// Brings the widgets of a page to life: their code is the notebook's, and a recording of their data lies in the page. Once
// a reader asks for it, Python answers in place of the recording: in one worker for all demos of the page (lab/demos.js).

const WORKER = new URL("../lab/demos.js", document.currentScript.src);
const RECORDED = "This is a recording: its steps and buttons work, and the numbers of a graph that can be dragged.";
const LOADS = "All else needs Python (up to 40 MB to load).";
const WAITS = "Until then this is a recording.";
const ALIVE = "Python runs in this page and answers.";
const SERVED = "This is a recording. Python can answer here if the folder of this website is served: python -m http.server";

// The model of a widget. Without Python it answers from the recording; `send` takes changes to Python, which answers with
// `take`. `chosen`: what the reader has set.
function modelOf(traits, send = null) {
  const listeners = {};
  let changed = {};
  const tell = (name) => (listeners[`change:${name}`] ?? []).slice().forEach((listener) => listener());
  const take = (state) => {
    const news = Object.keys(state).filter((name) => JSON.stringify(traits[name]) !== JSON.stringify(state[name]));
    Object.assign(traits, state);
    news.forEach(tell);
  };
  const key = (state) => JSON.stringify(Object.entries(state).sort());
  const chosen = {};
  return {
    chosen,
    take,
    get: (name) => traits[name],
    set(name, value) {
      const found = name === "state" && traits.answers?.find(([state]) => key(state) === key(value));
      if (name === "state" && traits.answers && !found) return setTimeout(() => tell("shown")); // needs Python: it stays
      chosen[name] = changed[name] = value;
      take({ [name]: value });
      if (found) setTimeout(() => take({ shown: { ...found[1], serial: (traits.shown.serial ?? 0) + 1 } }));
    },
    save_changes() {
      send?.(changed);
      changed = {};
    },
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => (listeners[name] = (listeners[name] ?? []).filter((other) => other !== listener)),
  };
}

// What an explorer asks whether Python answers, and hides what only Python can do if not. A demo is not told while it is a
// recording: the answers to its buttons lie in the page.
const kernel = (answers) => ({ get_model: async () => ({ comm_live: answers, on() {}, off() {} }) });

// What can be wider than its page is scrolled by keyboard, too.
function letScroll(root) {
  for (const block of root.querySelectorAll("pre, .table-wrapper, div.shown, .ma-demo .ma-canvas")) block.tabIndex = 0;
}

// A widget is drawn when a reader comes near: a long page is there sooner.
const NEAR = new IntersectionObserver((places) => {
  for (const { target } of places.filter(({ isIntersecting }) => isIntersecting)) {
    NEAR.unobserve(target);
    target.comeNear();
  }
}, { rootMargin: "100%" });

// A widget in its place, and below it, unless it needs no Python, what answers, and if Python can run it here the button
// to change that.
class Live {
  constructor(place) {
    this.place = place;
    this.source = place.dataset.python;
    this.recording = modelOf(JSON.parse(place.querySelector("script").textContent));
    if (place.dataset.kind === "explorer") {
      this.recording.take({ own_id: "on this page" });
      this.recording.widget_manager = kernel(false);
    }
    this.bar = document.createElement("div");
    this.bar.className = "python";
    this.said = document.createElement("span");
    this.button = document.createElement("button");
    this.button.type = "button";
    this.bar.append(this.button, this.said);
    if (this.place.dataset.elsewhere) this.say(`${RECORDED} ${this.place.dataset.elsewhere}`, "", null);
    this.show(this.recording);
    place.comeNear = () => {
      this.near = true;
      this.show(this.model);
    };
    NEAR.observe(place);
  }

  show(model) {
    this.model = model;
    if (!this.near) return; // the still picture is there
    this.leave?.();
    const el = document.createElement("div");
    this.leave = liveWidgets[this.place.dataset.kind].render({ model, el });
    letScroll(el);
    this.place.replaceChildren(el, ...(this.source || this.place.dataset.elsewhere ? [this.bar] : []));
    this.place.classList.toggle("alive", model !== this.recording);
  }

  say(words, action, press) {
    this.said.textContent = words;
    this.button.textContent = action;
    this.button.hidden = !action;
    this.button.onclick = press;
  }

  // Python has made the widget. What the reader has chosen in the recording goes on.
  answer(id, state, send) {
    const model = modelOf(state, (changes) => send({ id, state: changes }));
    model.id = id;
    model.widget_manager = kernel(true);
    for (const [name, value] of Object.entries(this.recording.chosen)) model.set(name, value);
    this.show(model);
    model.save_changes();
  }
}

// Python for the demos of a page. None is loaded before a reader presses the button of one of them.
function offerPython(demos) {
  const record = (why = "") => {
    for (const demo of demos) {
      if (demo.model !== demo.recording) demo.show(demo.recording);
      demo.say(`${why} ${RECORDED} ${LOADS}`.trim(), "Start Python here", () => start(demo));
    }
  };
  const start = (first) => {
    let worker = null;
    const stop = (why) => {
      worker?.terminate();
      record(why);
    };
    const waiting = [first, ...demos.filter((demo) => demo !== first)];
    const next = () => waiting.length > 0 && worker.postMessage({ at: demos.indexOf(waiting[0]), source: waiting[0].source });
    const take = ({ data: { doing, failed, at, id, state, error } }) => {
      if (failed) return stop(`Python does not run here: ${failed}.`);
      if (doing) return waiting.forEach((demo) => demo.say(`${doing}. ${WAITS}`, "Stop", () => stop()));
      if (at === undefined) return demos.find((demo) => demo.model.id === id)?.model.take(state);
      const demo = waiting.shift();
      if (state) demo.answer(id, state, (changes) => worker.postMessage(changes));
      demo.say(state ? ALIVE : `Python cannot show this one here: ${error}. It stays a recording.`, "Stop Python", () => stop());
      next(); // one at a time: what readers change meanwhile does not wait for all
    };
    first.said.setAttribute("role", "status"); // of all demos that say the same, one is read out
    for (const demo of demos) demo.say(`Python is starting. ${WAITS}`, "Stop", () => stop());
    try {
      worker = new Worker(WORKER);
    } catch (error) {
      return stop(`Python does not run here: ${error.message}.`);
    }
    worker.addEventListener("message", take);
    worker.addEventListener("error", () => stop("Python does not run here: it could not be loaded."));
    next();
  };
  if (location.protocol === "file:") for (const demo of demos) demo.say(SERVED, "", null);
  else record();
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
  const live = [...document.querySelectorAll(".live")].map((place) => new Live(place));
  offerPython(live.filter((demo) => demo.source));
  if (location.protocol === "file:") document.querySelectorAll("a.lab").forEach(sayWhatTheLabNeeds);
  letScroll(document);
});
