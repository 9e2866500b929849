import { SetupError } from '../setup/say.mjs';

/**
 * Calls a main's API with a token.
 * @param {string} baseUrl
 * @param {string} token
 * @returns a function `(method, path, body?, expected?) => Promise<object | undefined>` that answers with the body;
 *   undefined for a status of `expected`, e.g. `[404]`; any other refusal is a SetupError
 */
export function apiClient(baseUrl, token) {
  const call = async (method, path, body, expected = []) => {
    const headers = { Authorization: `Bearer ${token}`, ...(body ? { 'Content-Type': 'application/json' } : {}) };
    const options = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const response = await fetch(`${baseUrl}${path}`, options);
    if (expected.includes(response.status)) return undefined;
    const text = await response.text();
    if (response.ok) return text ? JSON.parse(text) : {};
    throw new SetupError(
      `The demo could not be made: ${method} ${path} answered ${response.status}: ${text.slice(0, 500)}`,
    );
  };
  /** The same main with another token. */
  call.as = (other) => apiClient(baseUrl, other);
  return call;
}
