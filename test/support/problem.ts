import { expect } from 'chai';
import type { HttpResponse } from './http.js';

/** What never may stand in an answer: a stack, SQL, or an address of the inside (contract, section 8). */
const INSIDE = [
  /\bat .+\.[jt]s:\d+/,
  /node_modules/,
  /\b(select|insert into|update|delete from)\b.+\b(from|values|set|where)\b/i,
];

/** Checks that a response is a problem (RFC 9457) with this status and code; answers with its body. */
export function expectProblem(response: HttpResponse, status: number, code: string): Record<string, unknown> {
  const seen = `${response.status} ${response.text.slice(0, 300)}`;
  expect(response.status, seen).to.equal(status);
  expect(response.headers['content-type'], seen).to.match(/^application\/problem\+json(;|$)/);
  const body = response.json();
  expect(body, seen).to.include({ status, code });
  for (const field of ['type', 'title', 'detail']) expect(body[field], `${field} of ${seen}`).to.be.a('string');
  for (const pattern of INSIDE) expect(response.text).not.to.match(pattern);
  return body;
}
