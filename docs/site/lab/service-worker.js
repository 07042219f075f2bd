// Keeps what the lab has asked for, so that it opens again without a network. What can never be another file under its
// address is not asked for again: a hash or a version stands in it, or the page names the hash that it wants. All else
// is asked for anew while there is a network, so that a new version of the site is taken up.
// JupyterLite's own worker answers Python's requests for files, and whatever else is left here.

const KEPT = "lab";
const ANSWERED_BY_JUPYTERLITE = /\/api\/(drive|stdin|service-worker-heartbeat)/;
const NEVER_CHANGES = [
  /\.[0-9a-f]{7,}\.\w+(\?|$)/, // JupyterLab's scripts: a hash in the name
  /\?(_|v|sha256)=[0-9a-f]{7,}$/,
  /\/pyodide\/v[\d.]+\/(full\/)?(pyodide[\w.]*\.(m?js|wasm)|python_stdlib\.zip)$/,
];

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith("http") || ANSWERED_BY_JUPYTERLITE.test(url)) return;
  event.stopImmediatePropagation();
  event.respondWith(asked(event.request));
});

async function asked(request) {
  const kept = await caches.open(KEPT);
  const key = request.mode === "navigate" ? request.url.split("?")[0] : request; // one page opens all notebooks
  const before = await kept.match(key);
  if (before && (await isThis(before, request))) return before;
  try {
    const answer = await fetch(request);
    if (answer.ok || answer.type === "opaque") await kept.put(key, answer.clone());
    return answer;
  } catch (error) {
    if (before) return before;
    throw error;
  }
}

async function isThis(answer, { url, integrity }) {
  if (!integrity) return NEVER_CHANGES.some((address) => address.test(url));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await answer.clone().arrayBuffer()));
  return integrity === `sha256-${btoa(String.fromCharCode(...hash))}`;
}

importScripts("jupyterlite-service-worker.js");
