// The page for when the server cannot be reached: it asks again now and then, and goes on where the reader was.
const EVERY = 5000;

async function look() {
  const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) location.reload();
  else document.getElementById("said").textContent = "Still offline. This page looks again by itself.";
}

document.getElementById("again").addEventListener("click", look);
window.addEventListener("online", look);
setInterval(look, EVERY);
