import { expect } from 'chai';
import { scopesOf } from '../../src/contract/access.js';
import { readPage } from '../../src/contract/paging.js';
import { Problem, ProblemError, problemCodes, statusOf, toProblem } from '../../src/contract/problems.js';
import { compile } from '../../src/contract/validate.js';

describe('problems', () => {
  it('say code, status and title for each code, and fit their schema', () => {
    const check = compile(Problem);
    for (const code of problemCodes) {
      const problem = toProblem(new ProblemError(code, 'Because.'));
      expect(problem).to.include({
        code,
        status: statusOf[code],
        detail: 'Because.',
        type: `urn:turnkeep:problem:${code}`,
      });
      expect(check(problem).ok).to.equal(true);
    }
  });

  it('say nothing of an error that was not written for a client', () => {
    for (const thrown of [
      new Error('select * from secrets'),
      'secrets',
      { detail: 'secrets', code: 'forbidden' },
      undefined,
    ]) {
      const problem = toProblem(thrown);
      expect(problem).to.include({ code: 'internal', status: 500 });
      expect(JSON.stringify(problem)).not.to.contain('secrets');
    }
  });

  it('keep the cause for the log and out of the response', () => {
    const cause = new Error('inside');
    const error = new ProblemError('unavailable', 'Try again soon.', { cause, retryAfterS: 2 });
    expect(error.cause).to.equal(cause);
    expect(error.retryAfterS).to.equal(2);
    expect(JSON.stringify(toProblem(error))).not.to.contain('inside');
  });
});

describe('roles', () => {
  it('have the scopes of the table', () => {
    expect([...scopesOf('viewer')]).to.deep.equal(['agent:read']);
    expect([...scopesOf('user')]).to.deep.equal(['agent:read', 'agent:execute']);
    expect([...scopesOf('editor')]).to.deep.equal(['agent:read', 'agent:execute', 'agent:write']);
    expect([...scopesOf('admin')]).to.deep.equal(['agent:read', 'agent:execute', 'agent:write', 'project:manage']);
  });
});

describe('paging', () => {
  const before = '6F9619FF-8B86-D011-B42D-00C04FC964FF';

  it('is the newest 200 unless asked otherwise', () => {
    expect(readPage({})).to.deep.equal({ ok: true, value: { limit: 200 } });
    expect(readPage({ before, limit: '5', other: 'x' })).to.deep.equal({
      ok: true,
      value: { before: before.toLowerCase(), limit: 5 },
    });
  });

  it('refuses what is no id or no limit', () => {
    for (const limit of ['0', '-1', '1001', '1.5', '', 'x', '1e2'])
      expect(readPage({ limit }).ok, limit).to.equal(false);
    expect(readPage({ limit: ['1', '2'] }).ok).to.equal(false);
    expect(readPage({ before: 'x' }).ok).to.equal(false);
    expect(readPage({ before: [before, before] }).ok).to.equal(false);
  });
});
