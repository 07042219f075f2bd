// Large type for all demos of a notebook. Each picture is fitted to the screen, but no text in it is smaller than can be
// read from the last row. Zooming the page leaves a picture as large as it is in CSS pixels, so it really is enlarged.

const READABLE = 14; // CSS pixels
const LARGEST = 2.2; // times its own size: more does not make a small graph clearer

function render({ el }) {
  const before = window.devicePixelRatio;
  const zoomed = () => window.devicePixelRatio / before;
  let asked = 0;
  const fitAll = () => {
    asked = 0;
    const notebook = el.closest(".jp-Notebook");
    if (!notebook) return;
    const type = Math.max(16, Math.min(20, (window.innerWidth * zoomed()) / 70));
    notebook.style.setProperty("--ma-type", `${type.toFixed(1)}px`);
    for (const root of notebook.querySelectorAll(".ma-demo, .ma-explorer, .ma-monitor")) fit(root, notebook, zoomed());
  };
  const ask = () => (asked ||= requestAnimationFrame(fitAll));
  const watcher = new MutationObserver(ask); // demos come, and put new pictures in
  watcher.observe(document.body, { childList: true, subtree: true });
  window.addEventListener("resize", ask);
  ask();
  return () => {
    watcher.disconnect();
    window.removeEventListener("resize", ask);
    cancelAnimationFrame(asked);
  };
}

// Set the width of one picture: what the screen has room for, had it not been zoomed.
function fit(root, notebook, zoom) {
  const canvas = root.querySelector(".ma-canvas") ?? root;
  const svg = canvas.querySelector("svg");
  if (!svg || !canvas.clientWidth) return;
  const { width, height } = svg.viewBox.baseVal;
  const around = root.offsetHeight - svg.getBoundingClientRect().height + 30;
  const across = canvas.clientWidth + window.innerWidth * (zoom - 1);
  const down = frameOf(notebook).clientHeight + window.innerHeight * (zoom - 1) - around;
  const scale = Math.max(READABLE / finest(svg), Math.min(across / width, down / height, LARGEST));
  root.style.setProperty("--ma-width", `${Math.round(scale * width)}px`);
  root.style.setProperty("--ma-scale", scale.toFixed(3));
}

function frameOf(notebook) {
  return notebook.querySelector(".jp-WindowedPanel-outer") ?? notebook;
}

// The smallest type in a picture, in its own units.
function finest(svg) {
  const sizes = [...svg.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize));
  return sizes.length ? Math.min(...sizes) : READABLE;
}

export default { initialize, render };
