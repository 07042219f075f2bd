// Keeps what the lab has asked for, so that it opens again without a network. With one, everything is asked for anew.
// JupyterLite's own worker answers Python's requests for files, and whatever else is left here.

const KEPT = "lab";
const ANSWERED_BY_JUPYTERLITE = /\/api\/(drive|stdin|service-worker-heartbeat)/;

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith("http") || ANSWERED_BY_JUPYTERLITE.test(url)) return;
  event.stopImmediatePropagation();
  event.respondWith(asked(event.request));
});

async function asked(request) {
  const kept = await caches.open(KEPT);
  const key = request.mode === "navigate" ? request.url.split("?")[0] : request; // one page opens all notebooks
  try {
    const answer = await fetch(request);
    if (answer.ok || answer.type === "opaque") await kept.put(key, answer.clone());
    return answer;
  } catch (error) {
    const before = await kept.match(key);
    if (before) return before;
    throw error;
  }
}

importScripts("jupyterlite-service-worker.js");
