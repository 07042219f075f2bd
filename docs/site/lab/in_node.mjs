// A Pyodide in node that runs a program: node in_node.mjs PYODIDE FOLDER PROGRAM [PACKAGE ...]. PROGRAM is in Python. It
// works in FOLDER, and can import these packages of the lock file. Nothing is asked of a network.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodideFolder, folder, program, ...packages] = process.argv.slice(2);

async function main() {
    const { loadPyodide } = await import(pathToFileURL(`${pyodideFolder}/pyodide.mjs`).href);
    const pyodide = await loadPyodide({ indexURL: `${pyodideFolder}/`, packageCacheDir: pyodideFolder });
    await pyodide.loadPackage(packages, { messageCallback: () => {} });
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
