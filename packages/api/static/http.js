/** A refusal of the server: its message was written for a person, its status tells what kind. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `The server answered ${status}.`);
    this.status = status;
  }
}

/**
 * A request with the browser's cookie. Paths are relative to the page, so the server may stand under any prefix.
 * @returns the response; throws Refused for a problem, and TypeError where nothing came back
 */
export async function request(method, path, { body, headers = {}, signal } = {}) {
  const response = await fetch(path, {
    method,
    signal,
    headers: body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.ok) return response;
  throw new Refused(response.status, await response.json().catch(() => ({})));
}

/** A request's JSON answer. */
export async function json(method, path, options) {
  return (await request(method, path, options)).json();
}

/**
 * The events of an event stream, each parsed from its `data`. Ends when the stream does.
 * @param {Response} response
 */
export async function* events(response) {
  let rest = '';
  for await (const text of chunks(response.body.pipeThrough(new TextDecoderStream()))) {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n');
      if (data !== '') yield JSON.parse(data);
    }
  }
}

/** Not every browser iterates over a stream by itself. Leaving the loop lets the connection go. */
async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}
