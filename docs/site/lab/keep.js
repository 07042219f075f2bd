// Asks the browser to keep a learner's work, and, on a first visit, has the service worker keep what was loaded before
// it was there.

navigator.storage?.persist?.();
performance.setResourceTimingBufferSize(5000);
if (navigator.serviceWorker && !navigator.serviceWorker.controller) {
  navigator.serviceWorker.addEventListener("controllerchange", () => {
    const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
    for (const address of new Set([location.href.split("?")[0], ...loaded])) fetch(address).catch(() => {});
  });
}
