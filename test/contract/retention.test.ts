import { expect } from 'chai';
import type { Chat } from '../support/chat.js';
import { eventually } from '../support/deadline.js';
import { useCluster } from '../support/suite.js';

describe('retention (section 1)', () => {
  const cluster = useCluster({ mains: 1, workers: 1, env: { RETENTION_DAYS: '30' } });
  let chat: Chat;
  beforeEach(async () => {
    chat = await cluster.newChat();
  });

  /** A turn with an attachment, whose session was last active `days` ago. */
  async function sessionOf(days: number): Promise<string> {
    const data = Buffer.from('a file').toString('base64');
    const attachments = [{ fileName: 'a.txt', mimeType: 'text/plain', data }];
    const { sessionId } = await chat.turn('hello', { attachments });
    await cluster.db.query("update sessions set updated_at = now() - $2 * interval '1 day' where id = $1", [
      sessionId,
      days,
    ]);
    return sessionId;
  }

  async function rowsOf(sessionId: string): Promise<number[]> {
    const counts = ['sessions where id = $1', 'messages where session_id = $1', 'executions where session_id = $1'].map(
      async (of) => Number((await cluster.db.query(`select count(*) as n from ${of}`, [sessionId]))[0]?.n),
    );
    return Promise.all(counts);
  }

  it('removes sessions without activity for RETENTION_DAYS, with all that belongs to them, and no others', async () => {
    const [old, recent] = [await sessionOf(31), await sessionOf(29)];
    // A worker keeps house when it starts.
    await cluster.startWorker();
    await eventually('the old session is still there', async () => (await rowsOf(old)).every((count) => count === 0));
    const gone = await chat.http().get(chat.path(`/${old}/messages`));
    expect(gone.status).to.equal(404);
    expect((await chat.transcript(recent)).messages).to.have.length(2);
    const [attachments] = await cluster.db.query('select count(*) as n from attachments');
    expect(Number(attachments?.n)).to.equal(1);
  });
});
