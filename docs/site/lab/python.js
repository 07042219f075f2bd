// Starts Python while JupyterLab is still loading, in the worker that the first kernel then gets (kernel.js).
// Says what to do when Python has ended for good, as after an overflow of the browser's stack: the lab itself would show
// a cell that runs for ever. The kernel's worker sends the page one message then, for JupyterLab's log.

const ENDED = /^Pyodide has (suffered a fatal error|exited)/;
const SAID = `<form method="dialog">
  <h2>Python has stopped</h2>
  <p>The kernel of this notebook has ended, and no cell will run. <b>Your notebook is safe.</b></p>
  <p>Choose <i>Kernel</i>, <i>Restart Kernel</i> in the menu. Then run your cells again from the top.</p>
  <p>What stopped it was most likely the last cell you ran: a call that calls itself too often, a chain of thousands of
    objects, or too little memory. Make it smaller before you run it again.</p>
  <button class="jp-mod-styled jp-mod-accept">OK</button>
</form>`;

function sayThatPythonHasEnded() {
  if (document.getElementById("python-has-ended")) return;
  const dialog = document.createElement("dialog");
  dialog.id = "python-has-ended";
  dialog.ariaLabel = "Python has stopped";
  dialog.style.cssText = "max-width: 32rem; font: 15px/1.5 sans-serif; color: var(--jp-ui-font-color1); background: var(--jp-layout-color1)";
  dialog.innerHTML = SAID;
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const OF_A_KERNEL = "/@jupyterlite/pyodide-kernel-extension/"; // in the address of the script that is its worker's
let started; // the worker, until a kernel has it

window.Worker = class extends Worker {
  constructor(script, options) {
    if (started && String(script).includes(OF_A_KERNEL)) {
      const worker = started;
      started = undefined;
      worker.postMessage(String(script)); // before all that JupyterLite sends it
      return worker;
    }
    super(script, options);
    this.addEventListener("message", ({ data }) => {
      if (ENDED.test(data?._logMessage?.data)) sayThatPythonHasEnded();
    });
  }
};
window.serviceWorkerCame.then(() => (started = new Worker(new URL("../kernel.js", location))));
