// Server-sent events, read from the body of a response. EventSource itself can neither POST nor send headers.

/** Yields `{event, id, data, retry}` for each event; `data` is null where there is none. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r\n", "\n");
      const parts = text.split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const event = read(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function read(part) {
  const found = { event: "message", id: null, data: null, retry: null };
  let any = false;
  for (const line of part.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    any = true;
    if (field === "data") found.data = found.data === null ? value : `${found.data}\n${value}`;
    else if (field in found) found[field] = value;
  }
  return any ? found : null;
}
