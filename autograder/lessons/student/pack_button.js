// The button of pack(): saves the open notebook, asks Python for the file, and gives it to the browser as a download.

const READY = "Save my work as one file";

function render({ model, el }) {
  const button = document.createElement("button");
  const words = document.createElement("span");
  button.className = "jp-mod-styled jp-mod-accept";
  button.textContent = READY;
  words.setAttribute("role", "status");
  words.style.marginInlineStart = "0.8em";
  el.append(button, words);

  button.addEventListener("click", async () => {
    words.textContent = "Packing your notebooks ...";
    await model.widget_manager?.context?.save(); // of this notebook; others were saved by themselves
    model.send({ pack: true });
  });
  const answered = ({ name, zip, said }) => {
    words.textContent = said;
    if (!zip) return;
    const link = document.createElement("a");
    link.href = `data:application/zip;base64,${zip}`;
    link.download = name;
    link.click();
  };
  model.on("msg:custom", answered);
  const stop = followKernel(model, (answers) => {
    button.disabled = !answers;
    if (!answers) words.textContent = "Run this cell first.";
  });
  return () => {
    stop();
    model.off("msg:custom", answered);
  };
}

export default { initialize, render };
