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
    const made = document.createElement("p");
    made.className = "ma-made";
    made.setAttribute("role", "status");
    made.textContent = answer() ? `You predicted: ${answer()}${verdict(answer(), model)}` : "You made no prediction here.";
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = "Predict again";
    again.addEventListener("click", () => commit(null));
    const asked = document.createElement("p");
    asked.textContent = question;
    box.replaceChildren(asked, made, again);
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

// What came out beside the prediction, if the cell has said it. Numbers are compared as numbers: 2**60 is 1152921504606846976.
function verdict(answer, model) {
  const outcome = model.get("outcome");
  if (!outcome) return ". Compare it with the output below.";
  const is = (text) => {
    const [one, other] = [text, outcome].map(numberIn);
    return text === outcome || (one != null && other != null && Math.abs(one - other) <= 0.005 * Math.abs(other));
  };
  if (is(answer)) return ", and that is right.";
  return `, but it is ${model.get("options").find(is) ?? outcome}.`;
}

export default { initialize, render };
