// Conversations are moved by dragging their row onto a folder, or out of it onto the list. The menu does the same by keyboard.
import { api } from "./api.js";
import { relist } from "./news.js";
import { toast, toastError } from "./toasts.js";

const KIND = "application/x-izzy-conversation";
let dragged = null; // the row

export function startFolders() {
  document.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.("[data-conversation-row]") ?? null;
    if (!dragged) return;
    event.dataTransfer.setData(KIND, dragged.dataset.conversationRow);
    event.dataTransfer.effectAllowed = "copyMove";
  });
  document.addEventListener("dragover", (event) => {
    const place = placeOf(event);
    mark(place);
    if (!place) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "move";
  });
  document.addEventListener("drop", (event) => {
    const place = placeOf(event);
    if (place) {
      event.preventDefault();
      move(dragged, place.dataset.folder);
    }
    end();
  });
  document.addEventListener("dragend", end);
}

/** Where it can be dropped: any folder but its own. */
function placeOf(event) {
  const place = dragged && event.target.closest?.("[data-folder]");
  return place && place.dataset.folder !== folderOf(dragged) ? place : null;
}

const folderOf = (row) => row.closest("[data-folder]")?.dataset.folder ?? row.dataset.inFolder;

function mark(place) {
  for (const other of document.querySelectorAll(".drop-here")) if (other !== place) other.classList.remove("drop-here");
  place?.classList.add("drop-here");
}

function end() {
  dragged = null;
  mark(null);
}

async function move(row, folder) {
  const { conversationRow: id } = row.dataset;
  const before = folderOf(row);
  const title = row.querySelector(".conversation-link").textContent.trim();
  const set = async (wanted) => {
    await api("PATCH", `/api/v1/conversations/${id}/`, { folder: wanted || null });
    await relist();
  };
  try {
    await set(folder);
    toast(folder ? `Moved “${title}”` : `Took “${title}” out of its folder`, { action: "Undo", onaction: () => set(before).catch(toastError) });
  } catch (error) {
    toastError(error);
  }
}
