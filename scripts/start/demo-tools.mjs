import { createServer } from 'node:http';
import { inState } from '../setup/paths.mjs';
import { rememberedPort } from '../setup/ports.mjs';

const skies = ['sunny', 'cloudy', 'light rain', 'windy', 'foggy'];

/** What the tools do with their arguments; undefined where those will not do. */
const tools = {
  '/weather': ({ city }) => (isText(city) ? weatherOf(city.trim()) : undefined),
  '/postcard': ({ to, text }) =>
    isText(to) ? { sent: true, to, text: text ?? '', note: 'Only in the demo: no postcard was posted.' } : undefined,
};

/**
 * The demo agents' tools: a small server on loopback. `POST /weather {city}` answers made-up weather, the same for a city
 * each time; `POST /postcard {to, text}` sends nothing and says so.
 * @returns {Promise<{url: string, stop: () => Promise<void>}>} `url` without a slash at its end
 */
export async function startDemoTools() {
  const server = createServer(answer);
  const port = await rememberedPort(inState('weather.port'));
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

async function answer(request, response) {
  const tool = tools[request.url];
  const input = await readObject(request).catch(() => undefined);
  const result = tool && input && tool(input);
  const [status, body] = result
    ? [200, result]
    : [tool ? 400 : 404, { error: 'There is no such tool, or no such use.' }];
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

async function readObject(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > 10_000) return undefined;
  }
  const value = JSON.parse(text);
  return value !== null && typeof value === 'object' ? value : undefined;
}

function isText(value) {
  return typeof value === 'string' && value.trim() !== '';
}

function weatherOf(city) {
  let hash = 0;
  for (const character of city.toLowerCase()) hash = (hash * 31 + character.codePointAt(0)) % 1_000_003;
  return { city, temperatureC: (hash % 38) - 5, sky: skies[hash % skies.length], note: 'Made up for the demo.' };
}
