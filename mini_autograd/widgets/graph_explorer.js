// The browser's half of the graph explorer. Every step comes ready made from Python; this file only applies steps to the SVG.
// The state at step n is what steps 0..n leave behind, so any jump is a replay from the start.

const KEYS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
const PHASES = { start: "Leaves", forward: "Forward", backward: "Backward", end: "Finished" };

function render({ model, el }) {
  const steps = model.get("steps");
  const view = build(model, el);
  const show = () => apply(view, steps, clamp(model.get("step"), steps), model.get("details"));
  const go = (by) => {
    const before = clamp(model.get("step"), steps);
    view.selected = null;
    model.set("step", clamp(before + by, steps)); // a change calls show
    if (model.get("step") === before) show();
  };
  connect(view, go, show);
  model.on("change:step", show);
  show();
  return () => model.off("change:step", show);
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
    class: "ma-explorer", role: "group", tabindex: "0", "data-lm-suppress-shortcuts": "true",
    "aria-label": "Graph explorer. Arrow keys step, Home and End jump to the start and the end.",
  });
  const bar = make("div", { class: "ma-bar", role: "toolbar", "aria-label": "Steps" });
  const buttons = {
    start: make("button", { type: "button", "data-go": "-Infinity" }, "Start"),
    back: make("button", { type: "button", "data-go": "-1" }, "Back"),
    step: make("button", { type: "button", "data-go": "1", class: "ma-main" }, "Step"),
    end: make("button", { type: "button", "data-go": "Infinity" }, "End"),
  };
  const counter = make("span", { class: "ma-counter" });
  bar.append(...Object.values(buttons), counter);
  const canvas = make("div", { class: "ma-canvas" });
  canvas.innerHTML = model.get("picture");
  const words = make("div", { class: "ma-words", "aria-live": "polite" });
  root.append(bar, canvas, words);
  el.replaceChildren(root);

  const svg = canvas.querySelector("svg");
  svg.setAttribute("role", "group");
  svg.style.minWidth = `${Math.round(svg.viewBox.baseVal.width * 0.75)}px`;
  const nodes = [...svg.querySelectorAll(".ma-node")];
  const edges = [...svg.querySelectorAll(".ma-edge")];
  const flows = [...svg.querySelectorAll(".ma-flow")];
  return { root, buttons, counter, canvas, words, nodes, edges, flows, ends: ends(model.get("edges")), selected: null };
}

function ends(pairs) {
  return pairs.map(([source, target]) => ({ source, target }));
}

function connect(view, go, show) {
  for (const button of Object.values(view.buttons)) {
    button.addEventListener("click", () => go(Number(button.dataset.go)));
  }
  view.root.addEventListener("keydown", (event) => {
    const node = event.target.closest(".ma-node");
    if (node && (event.key === "Enter" || event.key === " ")) select(view, node, show);
    else if (event.key in KEYS) go(KEYS[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  view.canvas.addEventListener("click", (event) => {
    const node = event.target.closest(".ma-node");
    if (node) select(view, node, show);
  });
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
  for (const step of steps.slice(0, at + 1)) {
    step.appear.forEach((node) => appeared.add(node));
    step.gradients.forEach(([node, text]) => gradients.set(node, text));
    step.flows.forEach(([edge]) => carried.add(edge));
  }
  return { appeared, gradients, carried };
}

function apply(view, steps, at, details) {
  const step = steps[at];
  const { appeared, gradients, carried } = state(steps, at);
  const backward = step.phase === "backward" || step.phase === "end";
  const flowing = new Map(step.flows);
  const receivers = new Set(step.flows.map(([edge]) => view.ends[edge].source));
  view.nodes.forEach((node, index) => {
    const constant = node.classList.contains("ma-constant");
    node.querySelector(".ma-grad").textContent = constant ? (backward ? "none" : "") : gradients.get(index) ?? "";
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
    edge.classList.toggle("ma-carried", carried.has(index) && step.phase === "backward");
  });
  view.flows.forEach((label, index) => (label.textContent = flowing.get(index) ?? ""));
  const lines = view.selected === null ? step.lines : chosen(details[view.selected], view.selected, appeared, gradients);
  describe(view, step, at, steps.length, lines);
  keepInSight(view, step.node);
}

function spoken(node, name, evaluated) {
  const [value, gradient] = [".ma-value", ".ma-grad"].map((part) => node.querySelector(part).textContent);
  if (!evaluated) return `${name}, not evaluated yet`;
  return `${name}, ${value}` + (gradient ? `, gradient ${gradient}` : "");
}

function chosen(detail, index, appeared, gradients) {
  if (!appeared.has(index)) return [`${detail.name}: not evaluated yet.`];
  if (!gradients.has(index)) return detail.forward;
  return [...detail.forward, `Gradient so far: ${gradients.get(index)}.`, ...detail.backward];
}

function describe(view, step, at, count, lines) {
  view.counter.textContent = `${PHASES[step.phase]}, step ${at} of ${count - 1}`;
  view.words.replaceChildren(...lines.map((line) => make("p", {}, line)));
  view.words.classList.toggle("ma-details", view.selected !== null);
  for (const [name, button] of Object.entries(view.buttons)) {
    const stuck = name === "start" || name === "back" ? at === 0 : at === count - 1;
    button.setAttribute("aria-disabled", String(stuck));
  }
}

// Scroll the canvas, never the page, so that the node of this step can be seen.
function keepInSight(view, index) {
  if (index === null) return;
  const node = view.nodes[index].getBoundingClientRect();
  const frame = view.canvas.getBoundingClientRect();
  if (node.left < frame.left || node.right > frame.right) {
    view.canvas.scrollLeft += node.left + node.width / 2 - frame.left - frame.width / 2;
  }
  if (node.top < frame.top || node.bottom > frame.bottom) {
    view.canvas.scrollTop += node.top + node.height / 2 - frame.top - frame.height / 2;
  }
}

export default { render };
