// The browser's half of the graph explorer. Every step comes complete from Python; this file only applies steps to the
// SVG. The state at step n results from steps 0..n, so any jump is a replay from the start. In a graph of numbers, texts name
// the places of numbers: those from Python, or while a leaf is moved those of the evaluator, which Python's then replace.

const KEYS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
const TRAVEL = 800; // milliseconds that a number travels
const ADDING = 600; // milliseconds for which a sum is shown before its result
const MOVED = 40; // with more steps than this nothing moves: they are played too quickly
const STILL = window.matchMedia("(prefers-reduced-motion: reduce)");
const FINDABLE = 20; // with at least this many nodes, a reader can search for one by name
const DRAGGED = 5; // pixels of mouse movement per step of a number
const SETTLED = 150; // milliseconds without a change after which Python is asked
const SAME = 1e-4; // numbers of an engine that computes in float32 differ by less
const TOLD = ["steps", "edges", "details", "values"];
const PHASES = { start: "Leaves", forward: "Forward", backward: "Backward", end: "Finished" };

function render({ model, el }) {
  const view = build(model, el);
  const steps = () => view.told.steps;
  const show = () => {
    tell(view, model);
    if (view.picture !== fitting(view, model)) place(view, model); // the step may change together with the picture
    showValues(view, model);
    apply(view, steps(), clamp(model.get("step"), steps()), model);
  };
  const go = (by, skip = false) => {
    const before = clamp(model.get("step"), steps());
    const questions = by === 1 && model.get("predict") ? (steps()[before + 1]?.questions ?? []) : [];
    const due = questions.length > 0 && !model.get("predictions")[before + 1];
    const asked = view.words.querySelector(".ma-predict") != null;
    view.selected = null;
    if (due && !asked && !skip) return ask(view, model, questions, before + 1, () => go(1, true));
    model.set("step", clamp(before + by, steps())); // a change calls show
    if (model.get("step") === before) show();
  };
  connect(view, model, go, show);
  const bench = makeBench(view, model, show);
  const width = new ResizeObserver(() => {
    if (view.picture !== fitting(view, model)) show();
    else if (view.zoom == null) resize(view, null);
  });
  const answered = () => {
    try {
      bench.answered();
      show();
    } finally {
      view.sender.answered(); // also if the graph cannot be shown
    }
  };
  model.on("change:step", show);
  model.on("change:picture", show);
  model.on("change:computed", answered);
  const leave = followKernel(model, (alive) => {
    if (view.tool.Blocks) view.tool.Blocks.disabled = !alive;
    bench.wake(alive); // the browser does everything else
    view.asleep.hidden = alive || view.evaluates;
    if (!alive) view.busy.stop();
  });
  show();
  bench.show();
  width.observe(view.canvas);
  return () => {
    leave();
    bench.leave();
    width.disconnect();
    view.busy.stop();
    view.motion?.stop();
    view.player.pause();
    model.off("change:step", show);
    model.off("change:picture", show);
    model.off("change:computed", answered);
  };
}

// What is shown, with the numbers in their places; once for the same texts and numbers.
function tell(view, model) {
  const sources = [...TOLD, "numbers"].map((name) => model.get(name)).concat([view.moved]);
  if (sources.every((source, at) => source === view.sources?.[at])) return;
  view.sources = sources;
  const [python, moved] = sources.slice(-2);
  view.evaluates = evaluates(python);
  const numbers = python.nodes && { ...(moved ?? python), s: sumsOf(python.nodes, (moved ?? python).c) };
  const read = (name) => (numbers ? JSON.parse(filled(JSON.stringify(model.get(name)), numbers)) : model.get(name));
  view.told = Object.fromEntries(TOLD.map((name) => [name, read(name)]));
  for (const question of view.told.steps.flatMap(({ questions }) => questions)) {
    if (numbers) question.value = question.shares.reduce((sum, edge) => sum + numbers.c[edge], 0);
  }
}

// Whether the evaluator knows every operation of a graph and finds the numbers that Python sent.
function evaluates({ nodes, v, g }) {
  if (!nodes?.every(({ operation }) => !operation || operationOf(operation))) return false;
  const own = computed(nodes, v, { seed: g.at(-1) });
  const near = (one, other) => Math.abs(one - other) <= SAME * Math.max(1, Math.abs(other));
  return v.every((value, at) => near(own.v[at], value)) && g.every((gradient, at) => gradient === null || near(own.g[at], gradient));
}

function clamp(step, steps) {
  return Math.max(0, Math.min(steps.length - 1, step));
}

function make(tag, attributes, text = "") {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

function build(model, el) {
  const root = make("div", {
    class: "ma-explorer", role: "group", tabindex: "0",
    "aria-label": "Graph explorer. Arrow keys step, Home and End jump to the start and the end.",
  });
  const bar = make("div", { class: "ma-bar", role: "toolbar", "aria-label": "Steps" });
  const buttons = {
    start: make("button", { type: "button", "data-go": "-Infinity" }, "Start"),
    back: make("button", { type: "button", "data-go": "-1" }, "Back"),
    step: make("button", { type: "button", "data-go": "1", class: "ma-main" }, "Step"),
    end: make("button", { type: "button", "data-go": "Infinity" }, "End"),
  };
  const play = make("button", { type: "button" }, "Play");
  const counter = make("span", { class: "ma-counter" });
  bar.append(...Object.values(buttons), play, counter);
  const tools = make("div", { class: "ma-bar ma-tools", role: "toolbar", "aria-label": "Picture" });
  const names = ["Smaller", "Larger", "Fit", "Memory", "Predict", "Expression", ...(model.get("foldable") ? ["Blocks"] : []), "Save SVG", "Save PNG"];
  const tool = Object.fromEntries(names.map((name) => [name, make("button", { type: "button" }, name)]));
  tools.append(...Object.values(tool));
  const canvas = make("div", { class: "ma-canvas" });
  const words = make("div", { class: "ma-words", "aria-live": "polite" });
  const busy = makeBusy(root);
  const find = make("input", { type: "search", size: "12", placeholder: "Find a node", "aria-label": "Find a node" });
  tools.append(find, busy.sign);
  const bench = make("div", { class: "ma-bench" });
  const asleep = make("div", { class: "ma-asleep", role: "status", hidden: "" }, "Python does not answer here. Run the cell in a notebook to change this graph.");
  root.append(bar, bench, canvas, words, tools, asleep);
  el.replaceChildren(...opener(model, root), root);
  const sender = makeSender(model, "wanted", busy);
  return { root, buttons, play, tool, counter, canvas, words, busy, bench, asleep, sender, find, nodes: [], edges: [], flows: [], leaves: new Map(), moved: null, selected: null, zoom: null };
}

// The button that opens an explorer which waits for it.
function opener(model, root) {
  if (!model.get("opened_by")) return [];
  const button = make("button", { type: "button", class: "ma-opener", "aria-expanded": "false" }, model.get("opened_by"));
  root.hidden = true;
  button.addEventListener("click", () => {
    root.hidden = !root.hidden;
    button.setAttribute("aria-expanded", String(!root.hidden));
  });
  return [button];
}

// The picture for the width of the page: on a narrow one a small graph stands upright.
function fitting(view, model) {
  return (isNarrow(view.canvas) && model.get("upright")) || model.get("picture");
}

// Put the picture in, and remember its parts.
function place(view, model) {
  view.picture = view.canvas.innerHTML = fitting(view, model);
  view.busy.stop();
  view.motion?.stop();
  view.at = NaN; // no step of this picture has been shown
  view.selected = null;
  view.svg = view.canvas.querySelector("svg");
  view.svg.setAttribute("role", "group");
  view.nodes = [...view.svg.querySelectorAll(".ma-node")];
  view.edges = [...view.svg.querySelectorAll(".ma-edge")];
  view.flows = [...view.svg.querySelectorAll(".ma-flow")];
  view.tool.Blocks?.setAttribute("aria-pressed", String(model.get("folded")));
  markLeaves(view);
  view.find.hidden = view.nodes.length < FINDABLE;
  resize(view, null);
}

// Numbers may have changed since the picture was drawn; its boxes and lines have not.
function showValues(view, model) {
  view.nodes.forEach((node, index) => (node.querySelector(".ma-value").textContent = view.told.values[index]));
  view.ends = view.told.edges.map(([source, target, factors]) => ({ source, target, factors }));
}

// The numbers of the leaves, to type or drag, and an entry for another expression. Python computes the results; in a graph
// that the evaluator computes, too, once the reader stops.
function makeBench(view, model, showGraph) {
  const numbers = make("div", { class: "ma-numbers", role: "group", "aria-label": "Values of the leaves" });
  const form = make("div", { class: "ma-expression", hidden: "" });
  const problem = make("p", { class: "ma-problem", role: "alert" });
  view.bench.append(form, problem, numbers);
  const entry = make("input", { type: "text", size: "32", spellcheck: "false", autocomplete: "off", "aria-label": "Expression", placeholder: "such as (a*b + a).tanh()" });
  const draw = make("button", { type: "button" }, "Draw");
  const choice = make("select", { "aria-label": "Examples" });
  choice.append(make("option", { value: "" }, "Examples"));
  const examples = model.get("examples");
  examples.forEach(([label], index) => choice.append(make("option", { value: String(index) }, label)));
  form.append(entry, draw, ...(examples.length > 0 ? [choice] : []));

  let alive = true;
  let timer = null;
  let ahead = {}; // numbers of leaves that Python has not answered yet
  const ask = (expression, values) => {
    if (alive) view.sender.change({ expression, values });
    else model.set("wanted", { expression, values }); // a page may start Python later
  };
  const replace = (expression, values) => {
    forget();
    ask(expression, values);
  };
  const submit = () => replace(entry.value.trim() || " ", ahead); // an empty text would mean the graph that is shown
  draw.addEventListener("click", submit);
  entry.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    submit();
  });
  choice.addEventListener("change", () => {
    if (choice.value === "") return;
    const [, expression, values] = examples[Number(choice.value)];
    entry.value = expression;
    replace(expression, values);
  });
  view.tool.Expression.addEventListener("click", () => {
    form.hidden = !form.hidden;
    view.tool.Expression.setAttribute("aria-pressed", String(!form.hidden));
    if (!form.hidden) entry.focus({ preventScroll: true });
  });

  const inputs = new Map();
  const setNumber = (name, value) => {
    if (!Number.isFinite(value)) return;
    const { expression } = model.get("computed");
    if (!view.evaluates) return ask(expression, { [name]: value }); // the other names keep theirs
    ahead = { ...ahead, [name]: value };
    move();
    clearTimeout(timer);
    timer = setTimeout(() => (answers() ? settle() : ask(expression, ahead)), SETTLED);
  };
  const forget = () => {
    clearTimeout(timer);
    ahead = {};
    view.moved = null;
  };
  const answers = () => model.get("computed").leaves.every(([, name, value]) => (ahead[name] ?? value) === value);
  const settle = () => {
    forget();
    show();
    showGraph();
  };
  const move = () => {
    const { nodes, v, g } = model.get("numbers");
    const leaves = [...v];
    for (const [index, name] of model.get("computed").leaves) leaves[index] = ahead[name] ?? v[index];
    view.moved = computed(nodes, leaves, { seed: g.at(-1) });
    model.set("predictions", {}); // they were about other numbers
    show();
    showGraph();
  };
  // Python has answered: perhaps what a reader wanted before the last moves.
  const answered = () => {
    if (answers() || model.get("computed").problem) forget();
    show();
  };
  const show = () => {
    const { expression, leaves: known, problem: words } = model.get("computed");
    const leaves = known.map(([index, name, value]) => [index, name, ahead[name] ?? value]);
    problem.textContent = words;
    problem.hidden = !words;
    if (expression && document.activeElement !== entry) entry.value = expression;
    if (leaves.map(([, name]) => name).join() !== [...inputs.keys()].join()) {
      inputs.clear();
      numbers.replaceChildren();
      for (const [, name] of leaves) {
        const label = make("label", {}, `${name} `);
        const input = make("input", { type: "number", step: "0.1" });
        input.addEventListener("input", () => input.value !== "" && setNumber(name, Number(input.value)));
        label.append(input);
        numbers.append(label);
        inputs.set(name, input);
      }
    }
    for (const [, name, value] of leaves) {
      const input = inputs.get(name);
      if (document.activeElement !== input) input.value = String(value); // do not interrupt a reader who is typing
    }
    numbers.hidden = leaves.length === 0;
    view.leaves = new Map(leaves.map(([index, name, value]) => [index, { value, set: (number) => setNumber(name, number) }]));
    markLeaves(view);
  };
  const wake = (lives) => {
    alive = lives;
    view.tool.Expression.hidden = !alive;
    view.bench.hidden = !alive && !view.evaluates;
    if (!view.bench.hidden) return show();
    view.leaves.clear();
    markLeaves(view);
  };
  return { show, answered, wake, leave: () => clearTimeout(timer) };
}

function markLeaves(view) {
  view.nodes.forEach((node, index) => node.classList.toggle("ma-movable", view.leaves.has(index)));
}

// A zoom of null shows the picture at its own size or as wide as the page, but at no less than three quarters of its
// size (a phone shows all of it: see the CSS); on a stage, at the size that the stage sets.
function resize(view, zoom) {
  const { width } = view.svg.viewBox.baseVal;
  const style = view.svg.style;
  view.zoom = zoom == null ? null : Math.max(0.05, Math.min(4, zoom));
  style.minWidth = zoom == null ? `calc(${width}px * var(--ma-scale, 0.75))` : "0";
  style.maxWidth = zoom == null ? "100%" : "none"; // gives way to minWidth
  style.width = zoom == null ? `calc(${width}px * var(--ma-scale, 1))` : `${width * view.zoom}px`;
}

function scale(view, by) {
  const now = view.svg.getBoundingClientRect().width / view.svg.viewBox.baseVal.width;
  const frame = view.canvas;
  const [x, y] = [frame.scrollLeft + frame.clientWidth / 2, frame.scrollTop + frame.clientHeight / 2];
  resize(view, now * by);
  const grown = view.zoom / now; // the middle of the view stays in the middle
  frame.scrollLeft = x * grown - frame.clientWidth / 2;
  frame.scrollTop = y * grown - frame.clientHeight / 2;
}

function fit(view) {
  const { width, height } = view.svg.viewBox.baseVal;
  resize(view, Math.min(view.canvas.clientWidth / width, 550 / height));
}

function makePlayer(view, model, go) {
  let timer = null;
  const at = () => clamp(model.get("step"), view.told.steps);
  const last = () => view.told.steps.length - 1;
  const pause = () => {
    clearInterval(timer);
    timer = null;
    view.play.textContent = "Play";
  };
  const play = () => {
    if (at() >= last()) go(-Infinity);
    view.play.textContent = "Pause";
    timer = setInterval(() => {
      go(1, true);
      if (at() >= last()) pause();
    }, Math.max(120, Math.min(1000, 40000 / last())));
  };
  return { pause, toggle: () => (timer ? pause() : play()) };
}

function connect(view, model, go, show) {
  view.player = makePlayer(view, model, go);
  for (const button of Object.values(view.buttons)) {
    button.addEventListener("click", () => {
      view.player.pause();
      go(Number(button.dataset.go));
    });
  }
  view.play.addEventListener("click", view.player.toggle);
  const actions = {
    Smaller: () => scale(view, 0.8),
    Larger: () => scale(view, 1.25),
    Fit: () => (view.zoom == null ? fit(view) : resize(view, null)),
    Memory: () => view.tool.Memory.setAttribute("aria-pressed", String(view.root.classList.toggle("ma-memory"))),
    Predict: () => {
      model.set("predict", !model.get("predict"));
      model.save_changes();
      showPredict();
      view.player.pause();
      tellPredict();
    },
    Blocks: () => {
      view.player.pause();
      view.busy.start();
      model.set("folded", !model.get("folded"));
      model.save_changes();
    },
    "Save SVG": () => save(standalone(view.svg), "graph.svg"),
    "Save PNG": () => savePixels(view.svg),
  };
  const tellPredict = () => {
    if (!model.get("predict")) return show(); // a question that was open is taken back
    const next = view.told.steps.findIndex(({ questions }, number) => number > model.get("step") && questions.length > 0);
    if (next === model.get("step") + 1 && !model.get("predictions")[next]) return go(1);
    const when = next < 0 ? "Go back to be asked what the nodes receive." : "Before each backward step you will be asked what the nodes receive. Step on.";
    view.words.replaceChildren(make("p", {}, when));
  };
  const showPredict = () => view.tool.Predict.setAttribute("aria-pressed", String(model.get("predict")));
  showPredict();
  for (const [name, action] of Object.entries(actions)) view.tool[name]?.addEventListener("click", action);
  view.find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") find(view, view.told.details, show);
  });
  view.root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT"].includes(event.target.tagName)) return;
    if (event.key !== "Escape" && !isOwn(event)) return;
    const node = event.target.closest(".ma-node");
    const zooms = { "+": 1.25, "=": 1.25, "-": 0.8 };
    if (node && (event.key === "Enter" || event.key === " ")) select(view, node, show);
    else if (event.key === "Escape" && view.selected != null) {
      view.selected = null;
      show();
    }
    else if (event.key in zooms) scale(view, zooms[event.key]);
    else if (event.key === "0") resize(view, null);
    else if (event.key in KEYS) {
      view.player.pause();
      go(KEYS[event.key]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  view.canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // the plain wheel scrolls
    event.preventDefault();
    scale(view, event.deltaY < 0 ? 1.1 : 0.9);
  }, { passive: false });
  drag(view, (node) => select(view, node, show));
}

// Select the next node whose name contains these letters, and scroll it into view.
function find(view, details, show) {
  const letters = view.find.value.trim().toLowerCase();
  const places = details.map((_, place) => (place + (view.selected ?? -1) + 1) % details.length);
  const found = letters ? places.find((place) => details[place].name.toLowerCase().includes(letters)) : undefined;
  view.find.setAttribute("aria-invalid", String(letters !== "" && found === undefined));
  if (found === undefined) return;
  view.selected = found;
  show();
  keepInSight(view, found);
}

// Dragging a leaf to the right or left changes its number, dragging anything else pans; a click without movement
// selects a node.
function drag(view, choose) {
  let from = null;
  let moved = false;
  view.canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const leaf = view.leaves.get(Number(event.target.closest(".ma-node")?.dataset.node));
    from = { x: event.clientX, y: event.clientY, left: view.canvas.scrollLeft, top: view.canvas.scrollTop, leaf, start: leaf?.value };
    moved = false;
  });
  view.canvas.addEventListener("pointermove", (event) => {
    if (!from || !(event.buttons & 1)) return;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    if (!moved && Math.hypot(x, y) <= 5) return;
    if (!moved && from.leaf) view.canvas.setPointerCapture(event.pointerId); // the mouse may leave the picture
    moved = true;
    if (from.leaf) {
      from.leaf.set(Number((from.start + 0.1 * Math.round(x / DRAGGED)).toFixed(6)));
      return;
    }
    view.canvas.scrollLeft = from.left - x;
    view.canvas.scrollTop = from.top - y;
  });
  view.canvas.addEventListener("pointerup", () => (from = null));
  view.canvas.addEventListener("click", (event) => {
    const node = event.target.closest(".ma-node");
    if (node && !moved) choose(node);
  });
}

const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight",
  "text-anchor", "visibility", "display", "paint-order", "opacity"];

// The picture as it looks now, with its colors written out so that it needs no page around it.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [shown, copied] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  shown.forEach((element, index) => {
    const style = getComputedStyle(element);
    copied[index].setAttribute("style", DRAWN.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  copy.querySelector("style")?.remove();
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function savePixels(svg) {
  const { width, height } = svg.viewBox.baseVal;
  const fine = Math.min(2, 8000 / Math.max(width, height));
  const picture = new Image();
  picture.src = URL.createObjectURL(standalone(svg));
  await picture.decode();
  const canvas = make("canvas", { width: Math.round(width * fine), height: Math.round(height * fine) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(picture.src);
  canvas.toBlob((blob) => save(blob, "graph.png"), "image/png");
}

function select(view, node, show) {
  const index = Number(node.dataset.node);
  view.selected = view.selected === index ? null : index;
  show();
}

function state(steps, at) {
  const appeared = new Set();
  const gradients = new Map();
  const carried = new Set();
  const passed = new Set(); // nodes whose rules have been called
  for (const step of steps.slice(0, at + 1)) {
    step.appear.forEach((node) => appeared.add(node));
    step.gradients.forEach(([node, text]) => gradients.set(node, text));
    step.flows.forEach(([edge]) => carried.add(edge));
    if (step.phase === "backward") passed.add(step.node);
  }
  return { appeared, gradients, carried, passed };
}

function apply(view, steps, at, model) {
  const { details } = view.told;
  const step = steps[at];
  view.motion?.stop();
  const { appeared, gradients, carried, passed } = state(steps, at);
  const backward = step.phase === "backward" || step.phase === "end";
  const flowing = new Map(step.flows);
  const receivers = new Set(step.flows.map(([edge]) => view.ends[edge].source));
  view.nodes.forEach((node, index) => {
    const none = node.classList.contains("ma-constant") ? "none" : node.classList.contains("ma-unrecorded") ? "not recorded" : null;
    node.querySelector(".ma-grad").textContent = none ? (backward ? none : "") : gradients.get(index) ?? "";
    node.classList.toggle("ma-ghost", !appeared.has(index));
    node.classList.toggle("ma-now", step.node === index);
    node.classList.toggle("ma-receives", receivers.has(index));
    node.classList.toggle("ma-selected", view.selected === index);
    node.setAttribute("aria-pressed", String(view.selected === index));
    node.setAttribute("aria-label", spoken(node, details[index].name, appeared.has(index)));
  });
  view.edges.forEach((edge, index) => {
    edge.classList.toggle("ma-ghost", !appeared.has(view.ends[index].target));
    edge.classList.toggle("ma-in", step.phase === "forward" && view.ends[index].target === step.node);
    edge.classList.toggle("ma-carries", flowing.has(index));
    edge.classList.toggle("ma-carried", carried.has(index) && backward);
    edge.classList.toggle("ma-wrong", model.get("wrong").includes(index) && passed.has(view.ends[index].target));
  });
  const factors = (index) => {
    const { target, factors } = view.ends[index];
    return target === view.selected && gradients.has(target) && carried.has(index) ? factors : undefined;
  };
  view.flows.forEach((label, index) => (label.textContent = factors(index) ?? flowing.get(index) ?? ""));
  const judged = model.get("predictions")[at] ?? [];
  const own = judged.map((text, index) => verdict(step.questions[index], text)).filter(Boolean);
  const lines = view.selected == null ? [...own, ...step.lines] : chosen(details[view.selected], view.selected, appeared, gradients);
  describe(view, step, at, steps.length, lines);
  keepInSight(view, step.node);
  if (at === view.at + 1 && step.flows.length > 0 && steps.length <= MOVED && !STILL.matches) move(view, step, state(steps, view.at).gradients);
  view.at = at;
}

// Let the numbers travel along the edges and add up where they arrive. The moved elements are already at their final
// places, so this can be stopped at any time.
function move(view, step, before) {
  const travellers = step.flows.map(([index, text]) => {
    const line = view.edges[index].querySelector("path");
    return { label: view.flows[index], text, factors: view.ends[index].factors, line, length: line.getTotalLength() };
  });
  const arrivals = [...new Set(step.flows.map(([index]) => view.ends[index].source))].map((source) => {
    const place = view.nodes[source].querySelector(".ma-grad");
    const shares = step.flows.filter(([index]) => view.ends[index].source === source).map(([, text]) => text);
    const terms = [before.get(source), ...shares].filter((text) => text !== undefined);
    const sum = terms.map((text, index) => (index > 0 && text.startsWith("-") ? `(${text})` : text)).join(" + ");
    return { place, old: before.get(source) ?? "", sum: terms.length > 1 && sum.length <= 12 ? sum : null, last: place.textContent };
  });
  const started = performance.now();
  let timer = null;
  const stop = () => {
    clearTimeout(timer);
    for (const { label, text } of travellers) {
      label.removeAttribute("transform");
      label.textContent = text;
    }
    for (const { place, last } of arrivals) place.textContent = last;
    view.motion = null;
  };
  const draw = () => {
    const passed = performance.now() - started;
    if (passed > TRAVEL + (arrivals.some(({ sum }) => sum) ? ADDING : 0)) return stop();
    const share = Math.min(1, passed / TRAVEL);
    for (const { label, factors, line, length } of travellers) {
      const { x, y } = line.getPointAtLength(length * (1 - share)); // lines are drawn from an input to a result
      label.setAttribute("transform", `translate(${x - label.getAttribute("x")} ${y - 6 - label.getAttribute("y")})`);
      label.textContent = share < 1 ? factors : "";
    }
    for (const { place, old, sum, last } of arrivals) place.textContent = share < 1 ? old : (sum ?? last);
    timer = setTimeout(draw, 16);
  };
  view.motion = { stop };
  draw();
}

// Ask what a step will bring before showing it. Enter continues, even with an empty entry.
function ask(view, model, questions, number, goOn) {
  const form = make("form", { class: "ma-predict" });
  const inputs = questions.map((question) => {
    const shape = question.value == null;
    const text = shape ? `What is the shape of the gradient that ${question.name} receives? ` : `What does ${question.name} receive? `;
    const label = make("label", {}, text);
    const input = make("input", { type: "text", size: "8", spellcheck: "false", autocomplete: "off" });
    label.append(input);
    form.append(label);
    return input;
  });
  const result = make("span", { class: "ma-hint", role: "status" }, "Press Enter to compare, or leave it empty to skip.");
  form.append(make("button", { type: "submit" }, "Compare"), result);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // a notebook keeps Enter from forms
    event.stopPropagation();
    compare();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    compare();
  });
  const compare = () => {
    const texts = inputs.map((input) => input.value.trim());
    const wrong = questions.findIndex((question, index) => question.value != null && texts[index] && numberIn(texts[index]) == null);
    if (wrong >= 0) {
      result.textContent = `${texts[wrong]} is not a number. Write a number, such as -0.5, or a product, such as 2 * -0.5.`;
      inputs[wrong].focus();
      return;
    }
    if (texts.some(Boolean)) model.set("predictions", { ...model.get("predictions"), [number]: texts });
    goOn();
    model.save_changes();
    view.buttons.step.focus({ preventScroll: true });
  };
  view.words.replaceChildren(make("p", {}, `Next: ${view.told.steps[number].lines[0]}`), form);
  inputs[0].focus({ preventScroll: true });
}

// The reader's prediction beside the right answer.
function verdict({ name, value, shape, reason }, text) {
  if (!text) return "";
  const plain = (words) => words.replace(/[()[\]\s]|,\s*\)?$/g, "").replace(/,$/, "");
  const right = value == null ? plain(text) === plain(shape) : Math.abs(numberIn(text) - value) <= Math.max(5e-4, 0.005 * Math.abs(value));
  if (right) return `You predicted ${text} for ${name}, and that is right: ${reason}.`;
  return `You predicted ${text} for ${name}, but it receives ${value == null ? shape : String(Number(value.toPrecision(3)))}: ${reason}.`;
}

function spoken(node, name, evaluated) {
  const [what, value, gradient] = [".ma-label", ".ma-value", ".ma-grad"].map((part) => node.querySelector(part).textContent);
  if (!evaluated) return `${name}, not evaluated yet`;
  return `${name}, ${what} ${value}` + (gradient ? `, gradient ${gradient}` : "");
}

function chosen(detail, index, appeared, gradients) {
  if (!appeared.has(index)) return [`${detail.name}: not evaluated yet.`];
  if (!gradients.has(index)) return detail.forward;
  return [...detail.forward, `Gradient so far: ${gradients.get(index)}.`, ...detail.backward];
}

function describe(view, step, at, count, lines) {
  view.counter.textContent = `${PHASES[step.phase]}, step ${at} of ${count - 1}`;
  view.words.replaceChildren(...lines.map((line) => make("p", {}, line)));
  view.words.classList.toggle("ma-details", view.selected != null);
  for (const [name, button] of Object.entries(view.buttons)) {
    const stuck = name === "start" || name === "back" ? at === 0 : at === count - 1;
    button.setAttribute("aria-disabled", String(stuck));
  }
}

// Scroll the canvas, never the page, so that the node of this step is visible.
function keepInSight(view, index) {
  if (index == null) return;
  const node = view.nodes[index].getBoundingClientRect();
  const frame = view.canvas.getBoundingClientRect();
  if (node.left < frame.left || node.right > frame.right) {
    view.canvas.scrollLeft += node.left + node.width / 2 - frame.left - frame.width / 2;
  }
  if (node.top < frame.top || node.bottom > frame.bottom) {
    view.canvas.scrollTop += node.top + node.height / 2 - frame.top - frame.height / 2;
  }
}

export default { initialize, render };
