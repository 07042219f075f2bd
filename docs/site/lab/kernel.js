// The worker of a notebook's kernel, in which Python starts while JupyterLab is still loading. Then python.js sends the
// address of JupyterLite's script for this worker. It loads Pyodide as ever, and is given the one that has started.

importScripts("settings.js");

// The kernel itself, and what notebooks import until their first check. Later, each import would ask the page, which is
// busy then, for files in the lesson's folder.
const IMPORTS = `import piplite.piplite, pyodide_kernel
import autograder.student, autograder.checks.beside, autograder.checks.cases, autograder.checks.known`;
const importThem = importScripts;
const python = (async () => {
  const [interpreter, options] = await pythonSettings();
  importThem(interpreter);
  const pyodide = await loadPyodide(options);
  pyodide.runPython(IMPORTS);
  return pyodide;
})();

self.importScripts = (script) => {
  importThem(script);
  self.loadPyodide = async ({ stdout, stderr }) => {
    const pyodide = await python;
    pyodide.setStdout({ batched: stdout });
    pyodide.setStderr({ batched: stderr });
    return pyodide;
  };
};
addEventListener("message", ({ data }) => importThem(data), { once: true });
