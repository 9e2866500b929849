import { createServer } from 'node:http';
import { inState } from '../setup/paths.mjs';
import { rememberedPort } from '../setup/ports.mjs';

const skies = ['sunny', 'cloudy', 'light rain', 'windy', 'foggy'];

/**
 * The demo agent's tool: a small server on loopback which answers `POST /weather {city}` with made-up weather,
 * the same for a city each time.
 * @returns {Promise<{url: string, stop: () => Promise<void>}>}
 */
export async function startWeather() {
  const server = createServer(answer);
  const port = await rememberedPort(inState('weather.port'));
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${port}/weather`,
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

async function answer(request, response) {
  const city = await readCity(request).catch(() => undefined);
  const [status, body] = city ? [200, weatherOf(city)] : [400, { error: 'Send {"city": "…"}.' }];
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

async function readCity(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > 10_000) return undefined;
  }
  const { city } = JSON.parse(text);
  return typeof city === 'string' && city.trim() ? city.trim() : undefined;
}

function weatherOf(city) {
  let hash = 0;
  for (const character of city.toLowerCase()) hash = (hash * 31 + character.codePointAt(0)) % 1_000_003;
  return { city, temperatureC: (hash % 38) - 5, sky: skies[hash % skies.length], note: 'Made up for the demo.' };
}
