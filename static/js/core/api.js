// REST calls of the page: same origin, session cookie, CSRF header, errors as one class.

export class ApiError extends Error {
  constructor(status, code, message, extra = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.extra = extra;
  }
}

export function csrfToken() {
  return document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}

/** api("PATCH", "/api/v1/memories/…/", {content}) → parsed JSON, null for an empty body. Throws ApiError. */
export async function api(method, path, body) {
  const headers = { Accept: "application/json", "X-CSRFToken": csrfToken() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, credentials: "same-origin", body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new ApiError(0, "unreachable", "Izzy cannot be reached right now.");
  }
  const text = await response.text();
  const data = parse(text);
  if (response.ok) return data;
  throw new ApiError(response.status, data?.code ?? "error", data?.message ?? `The request failed (${response.status}).`, data?.extra);
}

function parse(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
