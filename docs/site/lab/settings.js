// How the lab starts Python, for the workers that do: kernel.js and demos.js.

const KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel";

// The address of Pyodide's script, and what loadPyodide is given.
async function pythonSettings() {
  const settings = await (await fetch("jupyter-lite.json")).json();
  const { pyodideUrl, loadPyodideOptions } = settings["jupyter-config-data"].litePluginSettings[KERNEL];
  const interpreter = new URL(pyodideUrl, location);
  const lockFileURL = new URL(loadPyodideOptions.lockFileURL, location).href;
  return [interpreter, { ...loadPyodideOptions, lockFileURL, indexURL: new URL(".", interpreter).href }];
}
