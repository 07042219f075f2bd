// A Pyodide in node that runs a job: node kernel.mjs PYODIDE FOLDER PROGRAM. The folder is mounted where Python works.
// PROGRAM, in Python, reads job.json there and prints its answers. Nothing is asked of a network.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodideFolder, folder, program] = process.argv.slice(2);

async function main() {
    const { loadPyodide } = await import(pathToFileURL(`${pyodideFolder}/pyodide.mjs`).href);
    const pyodide = await loadPyodide({ indexURL: `${pyodideFolder}/`, packageCacheDir: pyodideFolder });
    await pyodide.loadPackage("mini-autograd-course", { messageCallback: () => {} });
    pyodide.FS.mkdirTree("/drive");
    pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: folder }, "/drive");
    pyodide.runPython(`import os; os.chdir("/drive")`);
    pyodide.runPython(readFileSync(program, "utf8"));
}

// Node would print the line that threw, which is all of Pyodide.
main().catch((error) => {
    console.error(String(error.stack ?? error).slice(-4000));
    process.exit(1);
});
