// A question at the top of a cell's output. The output below it is covered until the reader has answered or skipped.
// Answers are kept in the notebook's metadata, by question: they outlive the kernel, and a second run of the cell does
// not ask again.

const KEPT = "predictions";

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "ma-demo ma-prediction";
  const box = document.createElement("div");
  box.className = "ma-bet";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Your prediction");
  root.append(box);
  el.replaceChildren(root);

  const question = model.get("question");
  const notebook = model.widget_manager?.context?.model;
  const kept = () => notebook?.getMetadata?.(KEPT) ?? {};
  const answer = () => model.get("answer") ?? kept()[question] ?? null;
  const commit = (text) => {
    const { [question]: _, ...others } = kept();
    notebook?.setMetadata?.(KEPT, text == null ? others : { ...others, [question]: text });
    model.set("answer", text);
    model.save_changes();
    show();
    box.querySelector("button, input")?.focus({ preventScroll: true });
  };
  const cover = (covered) => {
    const output = el.closest(".jp-OutputArea-child");
    output?.classList.toggle("ma-question", covered);
  };
  const show = () => {
    cover(answer() == null);
    if (answer() == null) return askForPrediction(box, question, model.get("options"), commit);
    const made = worded("p", answer() ? `You predicted: ${answer()}${verdict(answer(), model)}` : "You made no prediction here.");
    made.className = "ma-made";
    made.setAttribute("role", "status");
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = "Predict again";
    again.addEventListener("click", () => commit(null));
    box.replaceChildren(worded("p", question), made, again);
  };
  model.on("change:outcome", show);
  show();
  const placed = requestAnimationFrame(() => cover(answer() == null)); // the view may not be in the page yet
  return () => {
    cancelAnimationFrame(placed);
    model.off("change:outcome", show);
    cover(false);
  };
}

// What came out beside the prediction, once the cell has run. A number may be off by half a percent, one that is
// measured ("about 40") by a quarter. Words may be meant where they are not equal: then only what came out is said.
function verdict(answer, model) {
  const outcome = model.get("outcome");
  if (!outcome) return ". Compare it with the output below.";
  const [guessed, came] = [answer, outcome].map((text) => parts(text, outcome));
  const close = outcome.startsWith("about ") ? 0.25 : 0.005;
  const same = (one, other) => one === other || Math.abs(one - other) <= close * Math.abs(other);
  const alike = guessed.length === came.length && came.every((part, place) => same(guessed[place], part));
  if (model.get("options").length > 0 ? answer === outcome : alike) return ", and that is right.";
  const numbers = guessed.length === came.length && [...guessed, ...came].every(Number.isFinite);
  const sure = model.get("options").length > 0 || numbers;
  return `${sure ? ", but it" : ". It"} is ${outcome}.`;
}

// The numbers and words of a text; words alone in alphabetical order, each once.
const FILLERS = /\b(about|and|or|the|a|an|times)\b/g;
const AS_SAID = { true: "yes", false: "no" };

function parts(text, outcome) {
  const plain = text.toLowerCase().replace(FILLERS, " ");
  const single = numberIn(plain);
  if (single != null && numberIn(outcome.replace("about", "")) != null) return [single]; // also 2 * 10, or 0,5
  const found = plain.match(/[-+\u2212]?\d+(\.\d+)?(e[-+]?\d+)?|[^\s,;()[\]"'`]+/g) ?? [];
  const each = found.map((part) => numberIn(part) ?? AS_SAID[part] ?? part);
  return each.some(Number.isFinite) ? each : [...new Set(each)].sort();
}

export default { initialize, render };
