// An engine of numbers in the browser: it computes a graph forward and backward within a frame. The graph explorer, "be the
// engine" and the game of the website use it; tests compare it, right and with wrong rules, with mini_autograd. The graphs,
// their pictures and their words come from Python.

// An operation, by its sign in a graph: its value, and the derivative of the value y by each input.
const OPERATIONS = {
  "+": { value: (a, b) => a + b, slopes: () => [1, 1] },
  "-": { value: (a, b) => a - b, slopes: () => [1, -1] },
  "*": { value: (a, b) => a * b, slopes: ([a, b]) => [b, a] },
  "/": { value: (a, b) => a / b, slopes: ([a, b]) => [1 / b, -a / b ** 2] },
  "**": { value: (a, b) => a ** b, slopes: ([a, b], y) => [b && b * a ** (b - 1), a === 0 && b >= 0 ? 0 : y * Math.log(a)] },
  neg: { value: (a) => -a, slopes: () => [-1] },
  abs: { value: Math.abs, slopes: ([a]) => [Math.sign(a)] },
  exp: { value: Math.exp, slopes: (_, y) => [y] },
  log: { value: Math.log, slopes: ([a]) => [1 / a] },
  sqrt: { value: Math.sqrt, slopes: (_, y) => [1 / (2 * y)] },
  sin: { value: Math.sin, slopes: ([a]) => [Math.cos(a)] },
  cos: { value: Math.cos, slopes: ([a]) => [-Math.sin(a)] },
  tanh: { value: Math.tanh, slopes: (_, y) => [1 - y * y] },
  sigmoid: { value: (a) => 1 / (1 + Math.exp(-a)), slopes: (_, y) => [y * (1 - y)] },
  relu: { value: (a) => Math.max(a, 0), slopes: ([a]) => [Number(a > 0)] },
};

// The operation with a sign; in "**3" the exponent is a part of it. Undefined if it is not known here.
function operationOf(sign) {
  const power = /^\*\*(.+)/.exec(sign)?.[1];
  if (power === undefined) return OPERATIONS[sign];
  const { value, slopes } = OPERATIONS["**"];
  return { value: (a) => value(a, Number(power)), slopes: ([a], y) => slopes([a, Number(power)], y).slice(0, 1) };
}

// All numbers of a graph of nodes {operation, inputs}, inputs first: v, the value of each node; g, the gradient that arrives
// there; and for each edge, in the order of the nodes and their inputs, d, the local derivative, and c, what is sent along
// it. A node without an operation is a leaf, whose number is in `leaves`. `wrong`: an operation with other slopes.
function computed(nodes, leaves, { seed = 1, wrong = {} } = {}) {
  const v = [];
  nodes.forEach(({ operation, inputs }, at) => {
    v[at] = operation ? operationOf(operation).value(...inputs.map((input) => v[input])) : leaves[at];
  });
  const g = nodes.map(() => 0);
  g[nodes.length - 1] = seed;
  const back = nodes.map(({ operation, inputs }, at) => {
    if (!operation) return [];
    const { slopes } = operation === wrong.operation ? wrong : operationOf(operation);
    return slopes(inputs.map((input) => v[input]), v[at]);
  });
  const sent = nodes.map(() => []);
  for (let at = nodes.length - 1; at >= 0; at--) {
    sent[at] = back[at].map((slope) => g[at] * slope);
    nodes[at].inputs.forEach((input, place) => (g[input] += sent[at][place]));
  }
  return { v, g, d: back.flat(), c: sent.flat() };
}

// For each edge, the sum at its input once the edge has sent, for what all edges send.
function sumsOf(nodes, c) {
  const [sums, s] = [nodes.map(() => 0), []];
  let first = c.length;
  for (const { inputs } of [...nodes].reverse()) {
    first -= inputs.length;
    inputs.forEach((input, place) => (s[first + place] = sums[input] += c[first + place]));
  }
  return s;
}

// A text with the numbers of a graph in their places: {v3} is the value of node 3, {c0} what edge 0 sends. A negative number
// behind an operator, or with a power, is in parentheses.
function filled(text, numbers) {
  return text.replace(/([+\u2212\u00d7/*] |\u2212|\*\*)?\{([vgdcs])(\d+)\}(?=(\*\*)?)/g, (_, before = "", table, at, power) => {
    const number = short(numbers[table][at]);
    return before + ((before || power) && number.startsWith("-") ? `(${number})` : number);
  });
}

// A number as Python's pictures have it (mini_autograd/drawing/formatting.py): 12, 0.333, 1.235e-5. A tie is rounded away from 0.
function short(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf";
  if (Number.isInteger(number) && Math.abs(number) < 1e6) return String(number);
  const digits = Math.abs(number) < 1 ? 3 : 4;
  const rounded = Number(number.toPrecision(digits));
  if (Math.abs(rounded) >= 1e-4 && Math.abs(rounded) < 10 ** digits) return String(rounded);
  return rounded.toExponential().replace(/e\+(\d)$/, "e$1");
}

if (typeof module !== "undefined") module.exports = { computed, filled, operationOf, short, sumsOf };
