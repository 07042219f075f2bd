// The browser's half of every demo: native controls, so that the keyboard works; a picture made by Python; steps played
// here. While Python is busy, only the latest setting waits, so a slider may be dragged at any speed.

const LEAST_TYPE = 11; // CSS pixels: in a narrow page, a picture gets no smaller than that, and scrolls in its own box; on a phone only on request

function make(tag, attributes, text = "") {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

function render({ model, el }) {
  const root = make("div", { class: "ma-demo", role: "group", "aria-label": model.get("title") });
  const bar = make("div", { class: "ma-controls" });
  const canvas = make("div", { class: "ma-canvas" });
  const words = make("div", { class: "ma-words", "aria-live": "polite", tabindex: "-1" });
  const busy = makeBusy(root);
  const sender = makeSender(model, "state", busy);
  const readers = model.get("controls").map((control) => addControl(bar, control, model, sender));
  fold(bar, [...bar.children].filter((field) => !field.hidden), "More controls");
  const bet = makeBet(root, model, sender);
  const player = makePlayer(model, canvas, bet.waits);
  let alive = !model.get("answers"); // a page without Python has the answers to the buttons alone
  const asleep = make("div", { class: "ma-asleep", role: "status", hidden: "" }, "This demo has no kernel. Run the cell to use its controls.");
  const title = make("div", { class: "ma-title" }, model.get("title"));
  const larger = make("button", { type: "button", class: "ma-larger", "aria-pressed": "false" }, "Larger picture");
  larger.addEventListener("click", () => larger.setAttribute("aria-pressed", String(root.classList.toggle("ma-large"))));
  title.append(busy.sign, larger);
  const row = presets(model, sender);
  if (model.get("predict") != null) row.append(bet.button);
  root.append(title, asleep, bar, row, bet.box, canvas, player.bar, words);
  el.replaceChildren(root);

  // Parts of the picture that set controls: clicked, or chosen with Enter or Space.
  const choose = (event) => {
    const part = event.target.closest?.("[data-press]");
    if (!part || (event.type === "keydown" && !([" ", "Enter"].includes(event.key) && isOwn(event)))) return;
    event.preventDefault();
    sender.change(JSON.parse(part.dataset.press));
  };
  canvas.addEventListener("click", choose);
  canvas.addEventListener("keydown", choose);
  const showState = () => readers.forEach((read) => read(model.get("state")));
  let told = null;
  const showWords = () => {
    const shown = model.get("shown");
    const early = shown.words_at_end && model.get("step") < shown.steps.length - 1;
    const lines = early ? ["The last step shows how it ends."] : shown.words.filter((line) => !bet.tells(line));
    if (told === lines.join()) return; // else a screen reader would say it again
    told = lines.join();
    words.hidden = lines.length === 0;
    words.replaceChildren(...lines.map((line) => make("p", {}, line)));
  };
  const showStep = () => {
    player.show();
    bet.show();
    showWords();
  };
  const showBet = () => {
    bet.show();
    player.restart();
    showWords();
  };
  const showPicture = () => {
    const shown = model.get("shown");
    const chosen = canvas.querySelector(":focus-visible"); // chosen with the keyboard: a ring after a click would look like an answer
    const focused = chosen?.getAttribute("aria-label") ?? null;
    canvas.innerHTML = shown.svg;
    if (!alive) disarm(canvas, model);
    const svg = canvas.querySelector("svg");
    svg.style.setProperty("--ma-least", `${Math.ceil((LEAST_TYPE / finest(svg, LEAST_TYPE)) * svg.viewBox.baseVal.width)}px`);
    if (focused != null) {
      const parts = [...canvas.querySelectorAll("[data-press]")];
      (parts.find((part) => part.getAttribute("aria-label") === focused) ?? parts[0] ?? words).focus();
    }
    words.classList.toggle("ma-wrong", Boolean(shown.wrong));
    bet.show();
    player.restart();
    showWords();
  };
  const answered = () => {
    try {
      showPicture();
    } finally {
      sender.answered(); // also if the picture cannot be shown
    }
  };
  model.on("change:state", showState);
  model.on("change:shown", answered);
  model.on("change:step", showStep);
  model.on("change:predict", showBet);
  model.on("change:bets", showBet);
  const leave = followKernel(model, (lives) => {
    if (alive !== lives) {
      alive = lives;
      showPicture();
    }
    for (const part of root.querySelectorAll(".ma-controls :is(input, select, button), .ma-presets button")) part.disabled = !alive;
    asleep.hidden = alive;
    if (!alive) busy.stop();
  });
  showState();
  showPicture();
  return () => {
    leave();
    busy.stop();
    player.pause();
    model.off("change:state", showState);
    model.off("change:shown", answered);
    model.off("change:step", showStep);
    model.off("change:predict", showBet);
    model.off("change:bets", showBet);
  };
}

// Where nothing answers, no part of a picture looks as if it could be pressed. A recording may answer some.
function disarm(canvas, model) {
  const key = (state) => JSON.stringify(Object.entries(state).sort());
  const known = new Set((model.get("answers") ?? []).map(([state]) => key(state)));
  for (const part of canvas.querySelectorAll("[data-press]")) {
    if (known.has(key({ ...model.get("state"), ...JSON.parse(part.dataset.press) }))) continue;
    if (part.classList.contains("ma-tool")) part.remove();
    for (const name of ["class", "role", "tabindex", "aria-label", "data-press"]) part.removeAttribute(name);
  }
}

function addControl(bar, control, model, sender) {
  const id = `ma-control-${Math.random().toString(36).slice(2)}`; // each demo of a page loads this file for itself
  const field = make("div", { class: `ma-field ma-${control.kind}` });
  const label = make("label", { for: id }, control.label);
  const { input, read, after } = CONTROLS[control.kind](control, id, (value) => sender.change({ [control.name]: value }));
  input.setAttribute("data-control", control.name);
  if (control.kind === "switch") field.append(input, label);
  else field.append(label, input, ...after);
  if (control.hidden) field.hidden = true;
  bar.append(field);
  return (state) => read(state[control.name]);
}

const CONTROLS = {
  choice(control, id, change) {
    const input = make("select", { id });
    for (const option of control.options) input.append(make("option", { value: option }, option));
    input.addEventListener("change", () => change(input.value));
    return { input, read: (value) => (input.value = value), after: [] };
  },
  slider(control, id, change) {
    const input = make("input", { id, type: "range", min: "0", max: String(control.values.length - 1), step: "1" });
    const text = make("output", { for: id, class: "ma-number" });
    const show = () => {
      text.textContent = control.texts[Number(input.value)];
      input.setAttribute("aria-valuetext", text.textContent);
    };
    input.addEventListener("input", () => {
      show();
      change(control.values[Number(input.value)]);
    });
    const read = (value) => {
      if (document.activeElement === input && input.matches(":active")) return; // the reader is dragging it
      input.value = String(Math.max(0, control.values.indexOf(value)));
      show();
    };
    return { input, read, after: control.plays ? [text, playButton(control, input)] : [text] };
  },
  switch(control, id, change) {
    const input = make("input", { id, type: "checkbox" });
    input.addEventListener("change", () => change(input.checked));
    return { input, read: (value) => (input.checked = value), after: [] };
  },
  entry(control, id, change) {
    const input = make("input", { id, type: "text", size: "14", spellcheck: "false", autocomplete: "off" });
    input.addEventListener("change", () => change(input.value));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && isOwn(event)) change(input.value);
    });
    const read = (value) => {
      if (input.value !== value) input.value = value;
    };
    return { input, read, after: [] };
  },
};

// A button that runs a slider to its end, from its start or its present position.
function playButton(control, input) {
  const button = make("button", { type: "button", class: "ma-run" });
  let timer = null;
  const show = () => {
    button.textContent = timer ? "Pause" : "Play";
    button.setAttribute("aria-label", `${button.textContent}: ${control.label}`);
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    show();
  };
  const go = (to) => {
    input.value = String(to);
    input.dispatchEvent(new Event("input"));
  };
  const step = () => {
    if (!input.isConnected || input.disabled || input.value === input.max) return stop();
    go(Number(input.value) + 1);
  };
  button.addEventListener("click", () => {
    if (timer) return stop();
    if (input.value === input.max) go(0);
    timer = setInterval(step, Math.max(60, 6000 / Number(input.max)));
    show();
  });
  input.addEventListener("pointerdown", stop);
  show();
  return button;
}

function presets(model, sender) {
  const row = make("div", { class: "ma-presets", role: "toolbar", "aria-label": "Settings" });
  const entries = [...model.get("presets"), ["Reset", model.get("start")]];
  for (const [name, state] of entries) {
    const button = make("button", { type: "button", class: name === "Reset" ? "ma-reset" : "ma-preset" }, name);
    button.addEventListener("click", () => sender.change(state));
    row.append(button);
  }
  fold(row, [...row.querySelectorAll(".ma-preset")], "More settings");
  return row;
}

// Leave the first parts in sight, and put the rest behind a word.
const IN_SIGHT = 4;

function fold(place, parts, word) {
  if (parts.length <= IN_SIGHT) return;
  const more = make("details", { class: "ma-more" });
  more.append(make("summary", {}, word), ...parts.slice(IN_SIGHT));
  parts[IN_SIGHT - 1].after(more);
}

// A question that comes before its picture. What was chosen is kept with the notebook and never graded.
function makeBet(root, model, sender) {
  const box = make("div", { class: "ma-bet", role: "group", "aria-label": "Your prediction" });
  const button = make("button", { type: "button" }, "Predict");
  button.addEventListener("click", () => {
    model.set("predict", !model.get("predict"));
    if (model.get("predict")) {
      model.set("bets", {});
      if (waits()) model.set("step", 0); // the question comes before the first step
    }
    model.save_changes();
  });
  const current = () => (model.get("predict") ? model.get("shown").bet : null);
  const chosen = () => model.get("bets")[current()?.question];
  const waits = () => current() != null && chosen() === undefined;
  const choose = (option) => {
    const { question, reveals } = current();
    model.set("bets", { ...model.get("bets"), [question]: option });
    model.save_changes();
    sender.change(reveals);
  };
  let told = null;
  const show = () => {
    const bet = current();
    const { steps } = model.get("shown");
    button.setAttribute("aria-pressed", String(Boolean(model.get("predict"))));
    root.classList.toggle("ma-waits", waits());
    root.classList.toggle("ma-covered", waits() && steps.length < 2);
    const over = bet && !waits() && model.get("step") >= steps.length - 1;
    const state = JSON.stringify([bet, chosen() ?? null, over]);
    if (state === told) return; // a reader may have the focus on one of its buttons
    told = state;
    const focused = box.contains(document.activeElement);
    draw(bet, over);
    if (focused) (box.querySelector("p[tabindex]:not([hidden] *)") ?? button).focus({ preventScroll: true }); // what was pressed is gone
  };
  const draw = (bet, over) => {
    box.hidden = !bet || chosen() === "";
    if (!bet) return box.replaceChildren();
    if (!waits()) {
      const verdict = chosen() === bet.right ? `and that is right: ${bet.reason}` : `but it is ${bet.right}: ${bet.reason}`;
      box.replaceChildren(make("p", { role: "status", tabindex: "-1" }, `You predicted ${chosen()}${over ? `, ${verdict}` : ""}.`));
      if (over && model.get("presets").length > 0) box.append(following());
      return;
    }
    askForPrediction(box, bet.question, bet.options, choose);
  };
  // The next setting with a button, from its first step on: its question comes with it.
  const following = () => {
    const next = make("button", { type: "button" }, "Next question");
    next.addEventListener("click", () => {
      const presets = model.get("presets").map(([, state]) => state);
      const state = model.get("state");
      const at = presets.findIndex((preset) => Object.keys(preset).every((name) => preset[name] === state[name]));
      model.set("step", 0);
      sender.change(presets[(at + 1) % presets.length]);
    });
    return next;
  };
  const tells = (line) => box.textContent.includes(line); // it need not be said twice
  return { box, button, show, waits, tells };
}

function makePlayer(model, canvas, waits) {
  const bar = make("div", { class: "ma-player", role: "toolbar", "aria-label": "Steps" });
  const buttons = ["Start", "Back", "Play", "Step", "End"].map((name) => make("button", { type: "button" }, name));
  const [start, back, play, forward, end] = buttons;
  const track = make("input", { type: "range", min: "0", step: "1", "aria-label": "Step" });
  const text = make("span", { class: "ma-step", "aria-live": "polite" });
  bar.append(...buttons, track, text);
  let timer = null;
  let ended = false; // whether the last picture was at its last step; then the next one starts there too, if nothing is asked
  const steps = () => model.get("shown").steps;
  const at = () => (waits() ? 0 : Math.max(0, Math.min(steps().length - 1, model.get("step"))));
  const go = (step) => {
    const to = Math.max(0, Math.min(steps().length - 1, step));
    if (to === model.get("step")) show();
    else model.set("step", to); // calls show; saved with the next change of a control
  };
  const pause = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  };
  const show = () => {
    const step = at();
    for (const part of canvas.querySelectorAll("g[id^='from-'], g[id^='only-']")) {
      const [kind, number] = part.id.split("-");
      const visible = kind === "from" ? Number(number) <= step : Number(number) === step;
      part.style.display = visible ? "inline" : "none";
    }
    follow(canvas, step);
    track.max = String(steps().length - 1);
    track.value = String(step);
    text.textContent = steps()[step] ?? "";
    ended = !waits() && step >= steps().length - 1;
    if (ended) pause();
  };
  const stop = (action) => (...given) => {
    pause();
    action(...given);
  };
  start.addEventListener("click", stop(() => go(0)));
  back.addEventListener("click", stop(() => go(at() - 1)));
  forward.addEventListener("click", stop(() => go(at() + 1)));
  end.addEventListener("click", stop(() => go(steps().length - 1)));
  track.addEventListener("input", stop(() => go(Number(track.value))));
  play.addEventListener("click", () => {
    if (timer) return pause();
    if (at() >= steps().length - 1) go(0);
    play.textContent = "Pause";
    timer = setInterval(() => go(at() + 1), Math.max(60, 6000 / Math.max(steps().length, 1)));
  });
  dragAlong(canvas, waits, stop((step) => go(step)));
  const restart = () => {
    bar.style.display = steps().length > 1 ? "" : "none";
    if (ended && steps().length > 1) model.set("step", waits() ? 0 : steps().length - 1);
    show();
  };
  return { bar, show, restart, pause };
}

// Go to the step below the pointer where an area says along which path; not while a question waits for its answer.
function dragAlong(canvas, waits, go) {
  const area = (event) => event.target.closest?.("[data-drag]");
  const to = (event, { dataset }) => {
    const way = canvas.querySelector(`[data-way="${CSS.escape(dataset.drag)}"]`);
    const { x } = new DOMPoint(event.clientX, event.clientY).matrixTransform(way.getScreenCTM().inverse());
    const gaps = way.points.map((point) => Math.abs(parseFloat(point) - x));
    go(gaps.indexOf(Math.min(...gaps)));
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !area(event) || waits()) return;
    area(event).setPointerCapture(event.pointerId);
    to(event, area(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1 && area(event)?.hasPointerCapture(event.pointerId)) to(event, area(event));
  });
}

// Draw paths as far as the current step, put the marks along them at its point, and set what is other in each step.
function follow(canvas, step) {
  for (const part of canvas.querySelectorAll("[data-each]")) {
    part.each ??= Object.entries(JSON.parse(part.dataset.each));
    for (const [name, { [step]: value }] of part.each) {
      if (name === "text") part.textContent = value;
      else part.setAttribute(name, value);
    }
  }
  for (const way of canvas.querySelectorAll("[data-way]")) {
    way.points ??= way.getAttribute("d").slice(1).split("L");
    const points = way.points.slice(0, step + 1);
    way.setAttribute("d", `M${points.join("L")}`);
    const mark = canvas.querySelector(`[data-along="${CSS.escape(way.dataset.way)}"]`);
    mark?.setAttribute("transform", `translate(${points.at(-1)})`);
  }
}

export default { initialize, render };
