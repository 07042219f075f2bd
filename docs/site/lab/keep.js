// Asks the browser to keep a learner's work, and has the service worker there before the lab starts: Python reads the files
// of a lesson through it, and it keeps all that is loaded from then on, so that the lab opens without a network. What was
// loaded before is asked for once more. Where a browser allows no service worker, the lab starts without.

navigator.storage?.persist?.();
performance.setResourceTimingBufferSize(5000);

window.serviceWorkerCame = new Promise((go) => {
  const { serviceWorker } = navigator;
  if (!serviceWorker || serviceWorker.controller) return go();
  serviceWorker.addEventListener("controllerchange", () => {
    const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
    for (const address of new Set([location.href.split("?")[0], ...loaded])) fetch(address).catch(() => {});
    go();
  });
  const worker = new URL("../service-worker.js?enableCache=false", location); // the address that JupyterLite has
  serviceWorker.register(worker).then(({ active }) => active && go(), go); // active already: the page was asked for without it
});
