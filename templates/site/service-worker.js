// Keeps one page: the one that says that Izzy cannot be reached. Nothing of the user's is stored.
const NAME = "{{ name }}";
const KEPT = {{ kept|safe }};

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(KEPT)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = caches.keys().then((names) => Promise.all(names.filter((name) => name.startsWith("izzy-") && name !== NAME).map((name) => caches.delete(name))));
  event.waitUntil(old.then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  // Of a form that could not be sent the browser tells: it keeps what was typed, and asks before it sends it again.
  if (request.mode === "navigate" && request.method === "GET") event.respondWith(fetch(request).catch(() => caches.match("{{ offline }}")));
  else if (request.method === "GET" && KEPT.includes(new URL(request.url).pathname)) event.respondWith(fetch(request).catch(() => caches.match(new URL(request.url).pathname)));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow(event.notification.data.url));
});
