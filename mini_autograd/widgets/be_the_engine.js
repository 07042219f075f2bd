// "Be the engine": the reader chooses which node sends its gradients next, and what it sends. The graphs and their pictures
// come from Python; the evaluator computes the local slopes and the right gradients, and this file what the moves lead to.
// A node sends what has arrived at it by then, which may not be everything.

const WRONG_ANSWERS = 3; // at most, beside the right one
const CONSTANT = "constant";

// A graph after some moves {name, said}: what each node has received, what went along each edge, the order in which nodes
// sent, how many shares had arrived at those that sent early, and the edges whose share came too late.
class Play {
  constructor({ nodes, leaves }, moves) {
    this.nodes = nodes;
    this.ends = nodes.flatMap(({ inputs }, target) => inputs.map((source) => ({ source, target })));
    const { g, d } = computed(nodes, leaves);
    Object.assign(this, { right: g, slopes: d, sent: {}, done: [], early: new Map(), late: [], refused: "" });
    this.arrived = nodes.map(() => []);
    this.arrived[nodes.length - 1].push(1);
    for (const { name } of moves) this.send(nodes.findIndex((node) => node.name === name));
  }

  operations() {
    return this.nodes.flatMap(({ operation }, at) => (operation ? [at] : []));
  }

  // The edges along which a node sends: those to inputs that need a gradient.
  edgesOf(at) {
    return this.ends.flatMap(({ source, target }, edge) => (target === at && this.nodes[source].kind !== CONSTANT ? [edge] : []));
  }

  uses(at) {
    return Math.max(1, this.ends.filter(({ source }) => source === at).length);
  }

  total(at) {
    return this.arrived[at].reduce((sum, share) => sum + share, 0);
  }

  finished() {
    return this.done.length === this.operations().length;
  }

  // The operations that have received everything and have not sent yet.
  ready() {
    return this.operations().filter((at) => !this.done.includes(at) && this.arrived[at].length === this.uses(at));
  }

  send(at) {
    if (this.arrived[at].length === 0) return (this.refused = `Nothing has arrived at ${this.nodes[at].name} yet, so it has nothing to send.`);
    const [total, edges] = [this.total(at), this.edgesOf(at)];
    if (this.arrived[at].length < this.uses(at)) this.early.set(at, this.arrived[at].length);
    this.done.push(at);
    for (const edge of edges) {
      const { source } = this.ends[edge];
      this.sent[edge] = total * this.slopes[edge];
      this.arrived[source].push(this.sent[edge]);
      if (this.done.includes(source)) this.late.push(edge);
    }
  }
}

// What a node sends along its first edge: the right number, and wrong ones, each with what is wrong about it.
function questionOf(graph, moves, number) {
  const before = new Play(graph, moves.slice(0, number));
  const at = graph.nodes.findIndex(({ name }) => name === moves[number].name);
  const [edge] = before.edgesOf(at);
  const [incoming, local] = [before.total(at), before.slopes[edge]];
  const right = incoming * local;
  const reasons = new Map([
    [incoming, "That is what arrived. It has to be multiplied by the local slope."],
    [local, "That is the local slope alone. It has to be multiplied by what arrived."],
    [incoming + local, "That is a sum. What arrived and the local slope are multiplied."],
    [-right, "The sign is wrong."],
    [2 * right, "That is twice the right number."],
  ]);
  reasons.delete(right);
  const product = filled("{g0} \u00d7 {d0} = {c0}.", { g: [incoming], d: [local], c: [right] });
  return { at, edge, incoming, right, reasons, product };
}

// What to say of a graph after these moves.
function wordsOf(graph, moves) {
  const [play, last] = [new Play(graph, moves), moves.at(-1)];
  const { nodes, ends } = play;
  if (!last) return ["Click the node that sends first. It sends what has arrived at it, times each local slope."];
  const asked = questionOf(graph, moves, moves.length - 1);
  const name = nodes[asked.at].name;
  if (last.said === undefined && !play.finished()) {
    return [`${short(asked.incoming)} has arrived at ${name}. What does ${name} send to ${nodes[ends[asked.edge].source].name}?`];
  }
  const words = [];
  if (last.said === asked.right) words.push(`Right: ${asked.product}`);
  else if (last.said !== undefined) words.push(`Not ${short(last.said)}. ${asked.reasons.get(last.said) ?? ""} ${asked.product}`);
  if (!play.finished()) return [...words, "Which node sends next?"];
  const leaves = nodes.flatMap(({ kind }, at) => (kind === "leaf" ? [at] : []));
  const wrong = leaves.filter((at) => play.total(at) !== play.right[at]);
  const found = leaves.map((at) => `${nodes[at].name}: ${short(play.total(at))}`).join(", ");
  if (wrong.length === 0) words.push(`All gradients are right (${found}). Each node sent only after everything had arrived at it.`);
  for (const at of wrong) words.push(`${nodes[at].name} has ${short(play.total(at))}; the right gradient is ${short(play.right[at])}.`);
  for (const [at, count] of play.early) {
    const users = play.late.filter((edge) => ends[edge].source === at).map((edge) => nodes[ends[edge].target].name);
    words.push(`${nodes[at].name} sent when ${count} of its ${play.uses(at)} shares had arrived: the share from ${users.join(" and ")} came too late. A node may send once all nodes that use it have sent.`);
  }
  const said = moves.flatMap((move, number) => (move.said === undefined ? [] : [questionOf(graph, moves, number).right === move.said]));
  if (said.length > 0) words.push(`Right answers: ${said.filter(Boolean).length} of ${said.length}.`);
  return words;
}

const readMoves = (text) => text.split(" ").filter(Boolean).map((move) => {
  const [name, said] = move.split("=");
  return { name, said: said === undefined ? undefined : Number(said) };
});
const writeMoves = (moves) => moves.map(({ name, said }) => (said === undefined ? name : `${name}=${said}`)).join(" ");

function render({ model, el }) {
  el.innerHTML = `<div class="ma-explorer ma-game" role="group">
    <div class="ma-bar" role="toolbar" aria-label="Graphs"></div><div class="ma-canvas"></div>
    <div class="ma-words" aria-live="polite"></div><div class="ma-bar" role="toolbar" aria-label="Answers"></div></div>`;
  const root = el.firstChild;
  const [graphs, canvas, words, bar] = root.children;
  root.setAttribute("aria-label", model.get("title"));
  const chosen = () => model.get("graphs").find(({ name }) => name === model.get("example_name"));
  // No two graphs have a node of the same name: while another graph is being set, moves of the one before are none.
  const moves = () => readMoves(model.get("moves")).filter(({ name }) => chosen().nodes.some((node) => node.name === name));
  const take = (state) => {
    for (const [name, value] of Object.entries(state)) model.set(name, value);
    model.save_changes();
  };
  const make = (list) => take({ moves: writeMoves(list) });
  const button = (text, press, label = text) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick: press });
    made.setAttribute("aria-label", label);
    return made;
  };
  let picture = null;
  const waits = () => moves().length > 0 && moves().at(-1).said === undefined && !new Play(chosen(), moves()).finished();

  const press = (event) => {
    const node = event.target.closest?.("[role=button]");
    if (!node || (event.type === "keydown" && !([" ", "Enter"].includes(event.key) && isOwn(event)))) return;
    event.preventDefault();
    const { name } = chosen().nodes[node.dataset.node];
    const next = [...moves(), { name }]; // a question may stay open
    const { refused } = new Play(chosen(), next);
    if (refused) return say([refused]);
    make(next);
    if (event.type === "keydown") (bar.querySelector("button") ?? root).focus({ preventScroll: true });
  };
  canvas.addEventListener("click", press);
  canvas.addEventListener("keydown", press);
  const say = (lines) => words.replaceChildren(...lines.map((line) => worded("p", line)));

  const choices = model.get("graphs").map(({ name }) => button(name, () => take({ example_name: name, moves: "" })));
  graphs.append(...choices, ...model.get("presets").map(([name, state]) => button(name, () => take(state))));
  const showGraphs = () => {
    for (const choice of choices) choice.setAttribute("aria-pressed", String(choice.textContent === model.get("example_name")));
  };
  const fitting = () => (isNarrow(canvas) ? chosen().upright : chosen().picture);
  const place = () => {
    picture = canvas.innerHTML = fitting();
    const svg = canvas.firstChild;
    svg.setAttribute("role", "group");
    const { width } = svg.viewBox.baseVal;
    svg.style.width = `calc(${width}px * var(--ma-scale, 1))`; // a stage sets the scale
    svg.style.minWidth = `calc(${width}px * var(--ma-scale, 0.75))`; // as in the graph explorer
  };
  const showNodes = () => {
    const graph = chosen();
    const asked = waits() ? questionOf(graph, moves(), moves().length - 1) : null;
    const play = new Play(graph, asked ? moves().slice(0, -1) : moves()); // no answer is shown before the reader's
    canvas.querySelectorAll(".ma-node").forEach((node, at) => {
      const { name, kind, title } = graph.nodes[at];
      const shares = play.arrived[at];
      const arrived = shares.length > 1 ? `${shares.map((share, place) => filled(place ? " + {g0}" : "{g0}", { g: [share] })).join("")} = ${short(play.total(at))}` : shares.map(short)[0];
      node.querySelector(".ma-grad").textContent = kind === CONSTANT ? "none" : shares.length > 0 ? short(play.total(at)) : "";
      const gone = play.done.includes(at) || asked?.at === at;
      const open = kind === "operation" && !gone;
      node.setAttribute("role", open ? "button" : "img");
      node.setAttribute("aria-label", open ? `${name} sends` : `${title}, ${arrived ? `arrived: ${arrived}` : "nothing has arrived"}`);
      node.setAttribute("tabindex", open ? "0" : "-1"); // one that was pressed keeps the focus
      node.classList.toggle("ma-now", asked?.at === at);
      node.classList.toggle("ma-receives", play.done.includes(at));
      node.classList.toggle("ma-wrong-rule", play.early.has(at));
    });
    const behind = (edge) => play.late.includes(edge) || play.early.has(play.ends[edge].target);
    canvas.querySelectorAll(".ma-edge").forEach((line, edge) => {
      line.classList.toggle("ma-carries", asked?.edge === edge);
      line.classList.toggle("ma-carried", edge in play.sent);
      line.classList.toggle("ma-wrong", edge in play.sent && behind(edge));
    });
    canvas.querySelectorAll(".ma-flow").forEach((label, edge) => {
      const still = graph.nodes[play.ends[edge].source].kind === CONSTANT;
      label.textContent = still ? "" : edge in play.sent ? short(play.sent[edge]) : filled("\u00d7 {d0}", { d: [play.slopes[edge]] });
    });
  };
  const showAnswers = () => {
    const [graph, made] = [chosen(), moves()];
    const play = new Play(graph, made);
    const offered = [];
    if (waits()) {
      const { right, reasons } = questionOf(graph, made, made.length - 1);
      const answer = (said) => make([...made.slice(0, -1), { ...made.at(-1), said }]);
      const values = [right, ...[...reasons.keys()].slice(0, WRONG_ANSWERS)].sort((one, other) => one - other);
      offered.push(...values.map((value) => button(short(value), () => answer(value), `It sends ${short(value)}`)));
      offered.push(button("Show me", () => answer(right)));
    } else if (play.ready().length > 0) {
      offered.push(button("Show me", () => make([...made, { name: graph.nodes[play.ready()[0]].name }])));
    } else {
      const names = model.get("graphs").map(({ name }) => name);
      offered.push(button("Next graph", () => take({ example_name: names[(names.indexOf(graph.name) + 1) % names.length], moves: "" })));
    }
    if (made.length > 0) offered.push(button("Undo", () => make(made.slice(0, -1))), button("Start over", () => make([])));
    const focused = bar.contains(document.activeElement);
    bar.replaceChildren(...offered);
    if (focused) bar.firstChild.focus({ preventScroll: true }); // what was pressed is gone
  };
  const show = () => {
    if (picture !== fitting()) place();
    showGraphs();
    showNodes();
    say(wordsOf(chosen(), moves()));
    showAnswers();
  };
  const width = new ResizeObserver(() => picture !== fitting() && show());
  for (const name of ["example_name", "moves"]) model.on(`change:${name}`, show);
  show();
  width.observe(canvas);
  return () => {
    width.disconnect();
    for (const name of ["example_name", "moves"]) model.off(`change:${name}`, show);
  };
}

export default { initialize, render };
