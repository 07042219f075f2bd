// Large type for all demos of a notebook. Each picture is fitted to the screen, but its text never gets too small to
// read from the last row. Zooming the page does not change a picture's size in CSS pixels, so it really is enlarged. On
// request the notebook fills the screen and shows one demo at a time.

const READABLE = 14; // CSS pixels
const SMALLEST = 11; // a picture that fits the screen with type of this size is not cut off for larger type
const LARGEST = 2.2; // times its own size: a small graph does not get clearer beyond that
const PHONE = 600; // CSS pixels: a narrower screen
const LEAST_ROOM = 160; // CSS pixels for a picture, whatever else is on the screen
const BESIDE = 320; // CSS pixels for words beside a picture
const ROOTS = ".ma-demo, .ma-explorer, .ma-monitor";
const TURNS = { PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const OPENS = "KeyP"; // with Alt: JupyterLab and the browsers leave it free
const HELP = "Alt+P does the same. Page Down and Page Up turn the pages. Escape leaves.";
const CONTROLS = "button, input, select, textarea, .ma-explorer, .cm-editor"; // they keep the arrow keys

function make(tag, attributes, text = "") {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

function render({ model, el }) {
  const before = window.devicePixelRatio;
  const zoomed = () => window.devicePixelRatio / before;
  let asked = 0;
  const fitAll = () => {
    asked = 0;
    const notebook = el.closest(".jp-Notebook");
    if (!notebook) return;
    const type = Math.max(16, Math.min(40, (window.innerWidth * zoomed()) / 70, (window.innerHeight * zoomed()) / 40));
    notebook.style.setProperty("--ma-type", `${type.toFixed(1)}px`);
    for (const root of notebook.querySelectorAll(ROOTS)) {
      fit(root, notebook, zoomed());
      sized.observe(root);
    }
  };
  const ask = () => (asked ||= requestAnimationFrame(fitAll));
  const sized = new ResizeObserver(ask); // an element that is shown again gets its size a little later
  const watcher = new MutationObserver(ask); // demos appear, and replace their pictures
  watcher.observe(document.body, { childList: true, subtree: true });
  window.addEventListener("resize", ask);
  const deck = makeDeck(model, el, ask);
  ask();
  return () => {
    deck.stop();
    watcher.disconnect();
    sized.disconnect();
    window.removeEventListener("resize", ask);
    cancelAnimationFrame(asked);
  };
}

// Set the width of one picture to what the screen has room for without zoom.
function fit(root, notebook, zoom) {
  const canvas = root.querySelector(".ma-canvas") ?? root;
  const svg = canvas.querySelector("svg");
  if (!svg || !canvas.clientWidth) return;
  const { width, height } = svg.viewBox.baseVal;
  const deck = notebook.classList.contains("ma-deck");
  const shown = deck ? [...notebook.querySelectorAll(".jp-Cell:not(.ma-offstage)")] : [root];
  const all = shown.reduce((sum, part) => sum + part.offsetHeight, 30);
  const picture = Math.min(svg.getBoundingClientRect().height, canvas.clientHeight);
  const words = root.querySelector(".ma-words")?.offsetHeight ?? 0;
  const around = all - (root.classList.contains("ma-beside") ? Math.max(picture, words) : picture + words);
  let across = root.clientWidth + window.innerWidth * (zoom - 1) - 10;
  let down = frameOf(notebook).clientHeight + window.innerHeight * (zoom - 1) - around;
  svg.finest ??= finest(svg, READABLE); // looked up once, since a picture that changes is a new element
  const least = READABLE / svg.finest;
  // Put words beside the picture if height still limits it then.
  const beside = deck && root.matches(".ma-demo") && (across - BESIDE) / width >= Math.max(least, down / height);
  root.classList.toggle("ma-beside", beside);
  if (beside) across -= BESIDE;
  else down -= words;
  const phone = across < PHONE; // it shows a whole picture, and a larger one on request
  const fitting = Math.min(across / width, phone ? Infinity : down / height, LARGEST);
  const scale = phone || (deck && fitting * svg.finest >= SMALLEST) ? fitting : Math.max(least, fitting);
  root.style.setProperty("--ma-width", `${Math.round(scale * width)}px`);
  root.style.setProperty("--ma-scale", scale.toFixed(3));
  root.style.setProperty("--ma-room", `${Math.max(LEAST_ROOM, Math.floor(down) + 14)}px`); // a taller picture scrolls
}

function frameOf(notebook) {
  return notebook.querySelector(".jp-WindowedPanel-outer") ?? notebook;
}

// One demo per screen: the cells from a heading to the next, with all others and JupyterLab hidden.
function makeDeck(model, el, changed) {
  const open = make("button", { type: "button", class: "ma-open" }, "One demonstration per screen");
  const told = make("span", { role: "status" }, HELP);
  const row = make("div", { class: "ma-stage" });
  row.append(open, told);
  el.replaceChildren(row);

  const bar = make("div", { class: "ma-deck-bar", role: "toolbar", "aria-label": "Demonstrations" });
  const [previous, next, close] = ["Previous", "Next", "Leave"].map((name) => make("button", { type: "button" }, name));
  const place = make("span", { "aria-live": "polite" });
  bar.append(previous, place, next, close);
  let screens = [];
  let at = 0;
  let notebook = null;
  let opening = false;

  const show = (number) => {
    at = Math.max(0, Math.min(screens.length - 1, number));
    for (const cell of notebook.querySelectorAll(".jp-Cell")) cell.classList.toggle("ma-offstage", !screens[at].includes(cell));
    place.textContent = `${at + 1} of ${screens.length}`;
    previous.disabled = at === 0;
    next.disabled = at === screens.length - 1;
    frameOf(notebook).scrollTop = 0;
    // The arrow keys turn pages until a control is chosen. The bar is none: Enter on Next can be pressed again and again.
    if (!bar.contains(document.activeElement)) document.activeElement?.blur();
    changed();
  };
  const turn = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in TURNS)) return;
    const keeps = event.target.closest?.(event.key.startsWith("Page") ? ".cm-editor" : CONTROLS);
    if (keeps && !bar.contains(keeps)) return;
    event.preventDefault();
    event.stopPropagation();
    show(at + TURNS[event.key]);
  };
  // In full screen the browser takes Escape for itself. An element that uses the key keeps it from this handler.
  const escape = (event) => event.key === "Escape" && !event.defaultPrevented && leave();
  const left = () => document.fullscreenElement || leave();
  const leave = () => {
    if (!notebook) return;
    const [first] = screens[at];
    for (const cell of notebook.querySelectorAll(".ma-offstage")) cell.classList.remove("ma-offstage");
    notebook.classList.remove("ma-deck");
    notebook = null;
    bar.remove();
    window.removeEventListener("keydown", turn, true);
    window.removeEventListener("keydown", escape);
    document.removeEventListener("fullscreenchange", left);
    if (document.fullscreenElement) document.exitFullscreen();
    first.scrollIntoView();
    first.focus({ preventScroll: true }); // the active cell is where the stage opens again
    changed();
  };
  const start = async () => {
    if (notebook) return;
    const found = el.closest(".jp-Notebook");
    if (!found || opening) return;
    opening = true;
    const active = found.querySelector(".jp-Cell.jp-mod-active");
    await found.requestFullscreen().catch(() => {}); // if a browser refuses, JupyterLab stays visible around it
    told.textContent = "The cells that have not run are running\u2026";
    await runTheRest(model, found).catch(() => {}); // the cells say themselves what went wrong
    told.textContent = HELP;
    opening = false;
    screens = sections(found);
    if (screens.length === 0) {
      told.textContent = "There is no demonstration to show yet. Run all cells first.";
      if (document.fullscreenElement) document.exitFullscreen();
      return;
    }
    notebook = found;
    notebook.classList.add("ma-deck");
    notebook.append(bar);
    window.addEventListener("keydown", turn, true);
    window.addEventListener("keydown", escape);
    document.addEventListener("fullscreenchange", left);
    show(screens.findIndex((cells) => cells.includes(active)));
  };
  const startByKey = (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || event.code !== OPENS || !el.isConnected) return;
    event.preventDefault();
    event.stopPropagation();
    start();
  };
  open.addEventListener("click", start);
  window.addEventListener("keydown", startByKey, true);
  // The bar lies in no cell. A key that gets past it would make JupyterLab move the focus into a cell, away from the bar.
  bar.addEventListener("keydown", (event) => isOwn(event) && event.stopPropagation());
  previous.addEventListener("click", () => show(at - 1));
  next.addEventListener("click", () => show(at + 1));
  close.addEventListener("click", leave);
  const stop = () => {
    leave();
    window.removeEventListener("keydown", startByKey, true);
  };
  return { stop };
}

// Run the cells from the first that has not run, and wait for their demos. Where JupyterLab keeps itself from the page,
// a reader has to run them.
const QUIET = 600; // milliseconds without a new demo
const PATIENCE = 10000; // milliseconds

async function runTheRest(model, notebook) {
  const cells = [...(model.widget_manager?.context?.model.cells ?? [])];
  const waits = (cell) => cell.type === "code" && cell.executionCount == null && cell.sharedModel.getSource().trim();
  const first = cells.findIndex(waits);
  if (first < 0 || !window.jupyterapp) return;
  notebook.querySelectorAll(".jp-Cell")[first].focus(); // it becomes the active one
  await window.jupyterapp.commands.execute("notebook:run-all-below");
  const end = performance.now() + PATIENCE;
  for (let seen = -1, since = 0; performance.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const count = notebook.querySelectorAll(ROOTS).length;
    if (count !== seen) [seen, since] = [count, performance.now()];
    if (count > 0 && performance.now() - since > QUIET) return;
  }
}

// The sections of a notebook that show a demo: the cells from each heading to the next.
function sections(notebook) {
  const found = [[]];
  for (const cell of notebook.querySelectorAll(".jp-Cell")) {
    if (cell.querySelector(".jp-RenderedMarkdown :is(h1, h2)")) found.push([]);
    found.at(-1).push(cell);
  }
  return found.filter((cells) => cells.some((cell) => cell.querySelector(ROOTS)));
}

export default { initialize, render };
