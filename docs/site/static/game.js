// "Find the bug in this engine": a game on the front page. The engine of numbers of the widgets (evaluator.js) computes a
// graph forward and backward in the page, and the rule of one operation is wrong. The pictures of the graphs and the words
// about the bugs come from Python (docs/site/game.py); tests compare the engine, right and wrong, with mini_autograd.

// The bugs of the bank that fit here, as derivatives: bug -> operation -> what it takes for them.
const WRONG = {
  operands_swapped: { "*": ([a, b]) => [a, b], "-": () => [-1, 1] },
  sign_lost: { "-": () => [1, 1], "/": ([a, b]) => [1 / b, a / b ** 2] },
  operand_forgotten: { "+": () => [1, 0], "-": () => [1, 0], "*": ([, b]) => [b, 0] },
  product_like_sum: { "*": () => [1, 1], "/": () => [1, -1] },
  derivative_forgotten: { exp: () => [1], tanh: () => [1] },
  plus_for_minus: { tanh: (_, y) => [1 + y * y] },
  input_used_for_output: { tanh: ([x]) => [1 - x * x] },
  square_forgotten: { tanh: (_, y) => [1 - y] },
};

// Numbers from 0 to 1 that follow from a seed (mulberry32), so that a round can be passed on as a number.
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const FIRST = "Right, at the first try";
const HALVES = [-2, -1.5, -0.5, 0.5, 1.5, 2];

// A round: a graph, the numbers of its leaves, and a bug that shows in them. `bugs`: {name, operation}, as Python tells of them.
function roundOf(seed, graphs, bugs) {
  const random = randomFrom(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  for (;;) {
    const bug = pick(bugs);
    const graph = pick(graphs.filter(({ nodes }) => nodes.some(({ operation }) => operation === bug.operation)));
    const free = [...HALVES];
    const leaves = graph.nodes.map(({ operation }) => (operation ? null : free.splice(Math.floor(random() * free.length), 1)[0]));
    const wrong = { operation: bug.operation, slopes: WRONG[bug.name][bug.operation] };
    const [right, found] = [computed(graph.nodes, leaves), computed(graph.nodes, leaves, { wrong })];
    const off = graph.nodes.some(({ operation }, at) => !operation && Math.abs(right.g[at] - found.g[at]) > 0.05);
    const shown = [...right.v, ...found.g].every((number) => Math.abs(number) < 1000);
    if (off && shown) return { graph, leaves, bug, wrong };
  }
}

// A paragraph with code between backquotes.
function paragraph(text) {
  const made = document.createElement("p");
  text.split("`").forEach((part, place) => {
    made.append(place % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part);
  });
  return made;
}

class Game {
  constructor(place) {
    const { graphs, bugs } = JSON.parse(place.querySelector("script").textContent);
    Object.assign(this, { place, graphs, bugs, found: 0, played: 0 });
    place.innerHTML = `<div class="ma-explorer ma-game" role="group" aria-label="Find the bug in this engine">
      <div class="ma-numbers" role="group" aria-label="Numbers of the leaves"></div>
      <div class="ma-canvas"></div>
      <div class="ma-words" aria-live="polite"></div>
      <div class="ma-bar" role="toolbar" aria-label="Game"></div></div>`;
    [this.numbers, this.canvas, this.words, this.bar] = place.firstChild.children;
    const press = (event) => {
      const node = event.target.closest("[role=button]");
      if (!node || (event.type === "keydown" && ![" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      this.guess(Number(node.dataset.node));
    };
    this.canvas.addEventListener("click", press);
    this.canvas.addEventListener("keydown", press);
    new ResizeObserver(() => this.picture !== this.fitting() && this.draw()).observe(this.canvas);
    window.addEventListener("hashchange", () => this.begin());
    this.begin();
  }

  // The round of the address, or the first one.
  begin() {
    this.seed = Number(location.hash.match(/^#round=(\d{1,9})$/)?.[1] ?? 1);
    Object.assign(this, roundOf(this.seed, this.graphs, this.bugs), { tries: 0, over: false });
    this.numbers.replaceChildren(...this.graph.nodes.flatMap((node, at) => (node.operation ? [] : [this.entry(node.name, at)])));
    this.tell("One rule of this engine is wrong, and so are the gradients behind it. Change a number, follow what each node sends back, and press the operation whose rule is wrong.");
    this.draw();
  }

  entry(name, at) {
    const [label, input] = ["label", "input"].map((tag) => document.createElement(tag));
    Object.assign(input, { type: "number", step: "0.5", value: this.leaves[at] });
    input.addEventListener("input", () => {
      if (input.value === "") return;
      this.leaves[at] = Number(input.value);
      this.fill();
    });
    label.append(`${name} `, input);
    return label;
  }

  // On a narrow page the graph stands upright.
  fitting() {
    return this.canvas.clientWidth < 600 ? this.graph.upright : this.graph.picture;
  }

  draw() {
    this.picture = this.canvas.innerHTML = this.fitting();
    const svg = this.canvas.firstChild;
    svg.setAttribute("role", "group");
    svg.style.maxWidth = "100%";
    this.nodes = [...svg.querySelectorAll(".ma-node")];
    this.fill();
  }

  // Write the numbers into the picture.
  fill() {
    const { nodes } = this.graph;
    const { v, g, c } = computed(nodes, this.leaves, { wrong: this.wrong });
    this.nodes.forEach((node, at) => {
      node.querySelector(".ma-value").textContent = short(v[at]);
      node.querySelector(".ma-grad").textContent = short(g[at]);
      const choice = nodes[at].operation && !this.over;
      const said = `${nodes[at].title}, value ${short(v[at])}, gradient ${short(g[at])}`;
      node.setAttribute("aria-label", choice ? `${said}. Is its rule wrong?` : said);
      node.setAttribute("role", choice ? "button" : "img");
      node.setAttribute("tabindex", choice ? "0" : "-1"); // one that was pressed keeps the focus
      node.classList.toggle("ma-wrong-rule", this.over && nodes[at].operation === this.bug.operation);
    });
    this.canvas.querySelectorAll(".ma-flow").forEach((label) => (label.textContent = short(c[label.dataset.edge])));
  }

  guess(at) {
    const { operation, title } = this.graph.nodes[at];
    const right = operation === this.bug.operation;
    this.tries += 1;
    if (!right) return this.tell(`Not ${title}: each number that it sends back is what arrived, times how much its value changes with that input. ${this.tries > 1 ? this.bug.hint : ""}`);
    this.end(this.tries === 1 ? FIRST : `Right, at try ${this.tries}`);
  }

  end(verdict) {
    this.over = true;
    this.played += 1;
    this.found += verdict === FIRST;
    this.fill();
    this.tell(`${verdict}: ${this.bug.sentence}.`, `Why people write it: ${this.bug.misconception}`, `At the first try: ${this.found} of ${this.played}.`);
  }

  tell(...lines) {
    this.words.replaceChildren(...lines.map(paragraph));
    const button = (text, press) => Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick: press });
    const pass = button("Copy the link to this round", async () => {
      const link = `${location.href.split("#")[0]}#round=${this.seed}`;
      await navigator.clipboard?.writeText(link).then(() => (pass.textContent = "Copied"), () => prompt("The link to this round:", link));
    });
    const next = button("Next engine", () => (location.hash = `round=${this.seed + 1}`));
    const show = button("Show me", () => this.end("Shown"));
    const lesson = Object.assign(document.createElement("a"), { href: "lessons/00_start_here.html", textContent: "Build your own engine" });
    this.bar.replaceChildren(...(this.over ? [next, pass, lesson] : [show, pass]));
  }
}

if (typeof module !== "undefined") module.exports = { WRONG, roundOf };
else document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".find-the-bug").forEach((place) => new Game(place)));
