// The worker that runs the demos of a web page: the lab's Python, from where the lab has it, and demos.py.
// It is sent {at, source} to make a demo, and answers {at, id, state} or {at, error}; {id, state} is what has changed,
// in both directions. It says what it is {doing} until Python runs, and why it has {failed}.

importScripts("settings.js");
const IMPORTS = "import numpy as np, mini_autograd\nfrom mini_autograd.widgets import *"; // lesson_pages.py: KNOWN
const python = begin();

async function begin() {
  const [interpreter, options] = await pythonSettings();
  postMessage({ doing: "Python is loading, up to 40 MB with its packages" });
  importScripts(interpreter);
  const pyodide = await loadPyodide(options); // with its packages
  pyodide.runPython(await (await fetch("demos.py")).text());
  pyodide.globals.get("connect")((id, state) => postMessage({ id, state: JSON.parse(state) }));
  postMessage({ doing: "Python runs the demos of this page, one after another" });
  return pyodide;
}

function make(pyodide, { at, source }) {
  const globals = pyodide.runPython("{}");
  try {
    pyodide.runPython(IMPORTS, { globals });
    const widget = pyodide.runPython(source, { globals });
    const state = JSON.parse(pyodide.globals.get("opened")(widget));
    return { at, id: state.own_id, state };
  } catch (error) {
    return { at, error: String(error.message).trim().split("\n").at(-1) };
  }
}

onmessage = async ({ data }) => {
  try {
    const pyodide = await python;
    if (data.source) postMessage(make(pyodide, data));
    else pyodide.globals.get("changed")(data.id, JSON.stringify(data.state));
  } catch (error) {
    postMessage({ failed: String(error.message).trim().split("\n").at(-1) });
  }
};
