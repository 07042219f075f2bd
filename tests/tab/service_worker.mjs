// The lab's service worker in node, with a cache and a network made of texts: node service_worker.mjs WORKER REQUESTS.
// A request is {url, integrity, mode, network}; network is the text that lies there now, or null if nothing answers.
// Prints the texts that the worker answers with.
import { readFileSync } from "node:fs";

const [worker, requests] = process.argv.slice(2);
const kept = new Map();
const cache = {
    match: async (key) => kept.get(key.url ?? key)?.clone(),
    put: async (key, answer) => void kept.set(key.url ?? key, answer),
};
let listener;
const self = { addEventListener: (_, given) => (listener = given) };
const fetch = async ({ network }) => {
    if (network === null) throw new TypeError("Failed to fetch");
    return new Response(network);
};
const given = { self, fetch, caches: { open: async () => cache }, importScripts() {} };
new Function(...Object.keys(given), readFileSync(worker, "utf8"))(...Object.values(given));

const answers = [];
for (const request of JSON.parse(requests)) {
    let answer;
    const event = { stopImmediatePropagation() {}, respondWith: (promise) => (answer = promise) };
    listener({ ...event, request: { method: "GET", ...request } });
    answers.push(await (await answer).text());
}
console.log(JSON.stringify(answers));
