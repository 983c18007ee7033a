// The page's one websocket: opens, reopens with growing pauses, and says how it is doing.
// Events: "status" {detail: "connecting"|"open"|"lost"|"refused"}, "frame" {detail: frame}.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
const PING_EVERY = 25000;
const PONG_WITHIN = 8000;
const OPEN_WITHIN = 15000;

export class ChatSocket extends EventTarget {
  #url;
  #socket = null;
  #failures = 0;
  #timer = null;
  #heartbeat = null;
  #pongDue = null;
  status = "connecting";

  constructor(url) {
    super();
    this.#url = url;
    window.addEventListener("online", () => this.#reconnectNow());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.#reconnectNow());
    // Firefox closes sockets when a page goes into the back-forward cache.
    window.addEventListener("pageshow", (event) => event.persisted && this.#reconnectNow());
  }

  connect() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#pongDue = setTimeout(() => this.#neverOpened(socket), OPEN_WITHIN);
    socket.addEventListener("open", () => this.#onOpen(socket));
    socket.addEventListener("message", (event) => this.#onMessage(socket, event));
    socket.addEventListener("close", (event) => this.#onClose(socket, event));
  }

  /** Sends a frame; false when there is no connection (the caller keeps what must not be lost). */
  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  retryNow() {
    if (this.status === "lost") this.connect();
  }

  #onOpen(socket) {
    if (socket !== this.#socket) return;
    this.#heard();
    this.#failures = 0;
    this.#setStatus("open");
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => this.#ping(), PING_EVERY);
  }

  #onMessage(socket, event) {
    if (socket !== this.#socket) return;
    this.#heard();
    let frame;
    try {
      frame = JSON.parse(event.data);
    } catch {
      return;
    }
    if (frame.type !== "pong") this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
  }

  #onClose(socket, event) {
    if (socket !== this.#socket) return;
    clearInterval(this.#heartbeat);
    this.#heard();
    this.#socket = null;
    if (event.code === 4401 || event.code === 4403) {
      this.#setStatus("refused");
      return;
    }
    this.#failures += 1;
    // The first reconnect is quick and quiet; only the second failure is told to the reader.
    this.#setStatus(this.#failures > 1 ? "lost" : "connecting");
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (this.#failures - 1));
    this.#timer = setTimeout(() => this.connect(), pause * (0.75 + Math.random() / 2));
  }

  /** Nothing is due any more. */
  #heard() {
    clearTimeout(this.#pongDue);
    this.#pongDue = null;
  }

  #ping() {
    if (!this.send({ type: "ping" }) || this.#pongDue) return;
    const socket = this.#socket;
    this.#pongDue = setTimeout(() => this.#giveUp(socket), PONG_WITHIN);
  }

  /** The reader has waited long enough to be told. */
  #neverOpened(socket) {
    if (socket !== this.#socket) return;
    this.#failures = Math.max(this.#failures, 1);
    this.#giveUp(socket);
  }

  /** No sign of life: the connection is dead although the browser has not noticed. */
  #giveUp(socket) {
    if (socket !== this.#socket) return;
    this.#onClose(socket, { code: 1006 });
    socket.close();
  }

  #reconnectNow() {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#ping();
    else if (this.status === "lost" || this.status === "connecting") {
      if (!this.#socket) this.connect();
    }
  }

  #setStatus(status) {
    if (this.status === status) return;
    this.status = status;
    this.dispatchEvent(new CustomEvent("status", { detail: status }));
  }
}

export function socketUrl(path = "/ws/chat/") {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}${path}`;
}
