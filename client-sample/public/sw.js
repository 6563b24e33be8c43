// Keeps the client's own files, and nothing else: no answer of the API is ever stored.
// Hashed files never change; pages are asked of the server first.
const CACHE = "sidestage-files-1";
const PAGE = new URL("./", self.registration.scope).href;
const HASHED = new URL("./assets/", self.registration.scope).href;
const PAGE_PATIENCE_MS = 4000;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.add(PAGE)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (request.url.startsWith(HASHED)) event.respondWith(fromCache(request));
  else if (request.mode === "navigate" && !new URL(request.url).pathname.endsWith("/graphql")) {
    event.respondWith(fromServer(request));
  }
});

async function fromCache(request) {
  const cache = await caches.open(CACHE);
  const held = await cache.match(request);
  if (held) return held;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request, answer.clone());
  return answer;
}

async function fromServer(request) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(PAGE_PATIENCE_MS) });
    if (answer.ok) await cache.put(PAGE, answer.clone());
    return answer;
  } catch {
    return (await cache.match(PAGE)) ?? Response.error();
  }
}
