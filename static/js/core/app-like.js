// Izzy as an app: the service worker that knows the offline page, and notifications of what is done, where the reader wants them.
// Without these parts of the browser nothing is missing but them.
const WANTED = "izzy-notify";
const seen = new Set();

export function startAppLike() {
  navigator.serviceWorker?.register("/service-worker.js").catch(() => {});
  const box = document.getElementById("notify");
  if (!box || !("Notification" in window)) return;
  box.closest("[data-notify]").hidden = false;
  box.checked = wantsNotices();
  box.addEventListener("change", () => set(box));
}

async function set(box) {
  if (box.checked && Notification.permission === "default") await Notification.requestPermission();
  const allowed = Notification.permission === "granted";
  document.getElementById("notify-refused").hidden = !(box.checked && !allowed);
  box.checked = box.checked && allowed;
  try {
    if (box.checked) localStorage.setItem(WANTED, "yes");
    else localStorage.removeItem(WANTED);
  } catch {
    // A browser that keeps nothing forgets the choice.
  }
}

/** Whether the reader has switched them on in this browser and the browser still allows them. */
export function wantsNotices() {
  try {
    return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(WANTED) === "yes";
  } catch {
    return false;
  }
}

/** Tells of each thing that is done, once, while nobody looks at the page. */
export function notify(done) {
  for (const { id, title, text, url } of done) {
    if (seen.has(id)) continue;
    seen.add(id);
    if (!document.hidden) continue;
    const shown = show(title, { body: text, tag: id, icon: "/static/img/icon-192.png", data: { url } });
    shown.catch(() => seen.delete(id)); // tried again with the next news
  }
}

async function show(title, options) {
  try {
    const notice = new Notification(title, options);
    notice.addEventListener("click", () => {
      window.focus();
      location.assign(options.data.url);
    });
  } catch {
    // Browsers of phones let the service worker alone show them.
    const worker = await navigator.serviceWorker?.getRegistration();
    await worker?.showNotification(title, options);
  }
}
