import { Cards } from './cards.js';
import { events, json, Refused, request } from './http.js';
import { Transcript } from './transcript.js';

const RECONNECT_MS = 1_000;
const RECONNECT_MAX_MS = 15_000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** crypto.randomUUID is missing where the page came over plain http from another machine. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * The session on the screen: sends, follows and stops its turns. What it shows rests on reads (transcript and queue); streams only
 * make it quicker. A read that fails leaves on the screen what is there.
 */
export class Session {
  base = null;
  threadId = null;
  #elements;
  #transcript;
  #cards;
  #visit = new AbortController();
  #followed = null;
  #waits = false;
  #reading = null;
  #again = false;
  #listening = false;
  #draft = { text: null, key: null };

  constructor(elements) {
    this.#elements = elements;
    this.#transcript = new Transcript(elements.transcript);
    this.#cards = new Cards(elements.cards, (suspension, resumeData) => this.#answer(suspension, resumeData));
    elements.composer.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    elements.message.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    elements.stop.addEventListener('click', () => this.#stop());
  }

  /** Shows a session, or with `threadId` null the beginning of a new one. */
  async open(base, threadId) {
    this.close();
    this.base = base;
    this.threadId = threadId;
    if (threadId !== null) await this.#refresh();
  }

  /** Lets go of the session's streams. Its turns go on. */
  close() {
    this.#visit.abort();
    this.#visit = new AbortController();
    this.base = null;
    this.threadId = null;
    this.#followed = null;
    this.#waits = false;
    this.#transcript.show([]);
    this.#cards.show([]);
    this.#showPending([]);
    this.#showRunning(null);
    this.#say('');
  }

  /** Hears of changes, whoever made them, and reads again after each connect: what was missed is not repeated. */
  async listen() {
    if (this.#listening) return;
    this.#listening = true;
    for (let wait = RECONNECT_MS; ; wait = Math.min(wait * 2, RECONNECT_MAX_MS)) {
      try {
        for await (const event of events(await request('GET', 'push'))) {
          wait = RECONNECT_MS;
          if (event.type === 'connected' || event.data.threadId === this.threadId) this.#refresh();
          if (event.type === 'agentMessageQueueUpdated') this.#elements.onChange();
        }
      } catch (error) {
        if (error instanceof Refused && error.status === 401) return;
      }
      await pause(wait);
    }
  }

  /** Sends the draft. It leaves the composer when the server has kept it, not before. */
  async #send() {
    const { message, send } = this.#elements;
    const text = message.value;
    if (text.trim() === '' || this.base === null || send.disabled) return;
    // The same text again, after an answer that got lost, is the same submission.
    if (this.#draft.text !== text) this.#draft = { text, key: newKey() };
    send.disabled = true;
    this.#say('');
    const { signal } = this.#visit;
    try {
      const body = { message: text, ...(this.threadId === null ? {} : { sessionId: this.threadId }) };
      // A browser has six connections to a server: one stream at a time here, the rest is found by notifications.
      const streaming = this.#streaming;
      const Accept = streaming ? 'application/json' : 'text/event-stream';
      const headers = { Accept, 'Idempotency-Key': this.#draft.key };
      const response = await request('POST', this.base, { body, headers, signal });
      if (streaming) this.#kept((await response.json()).sessionId);
      else await this.#relay(response, signal);
    } catch (error) {
      if (!signal.aborted) this.#say(`Not sent: ${error.message}`);
    } finally {
      send.disabled = false;
    }
  }

  /** Reads the stream of a sent message, from its being kept on in the background. */
  async #relay(response, signal) {
    const stream = events(response);
    const first = await stream.next();
    if (first.value?.type !== 'message-queued')
      throw new Error('the connection broke before the message was kept. Send again.');
    this.#kept(first.value.sessionId);
    this.#apply(stream, signal);
  }

  /** The message is committed: the composer is free for the next one. */
  #kept(sessionId) {
    // What was written meanwhile stays.
    if (this.#elements.message.value === this.#draft.text) this.#elements.message.value = '';
    this.#draft = { text: null, key: null };
    this.threadId = sessionId;
    this.#elements.onChange();
    this.#refresh();
  }

  /** Shows a stream's events as long as this session is on the screen; then reads what came of it. */
  async #apply(stream, signal) {
    let mine = null;
    this.#waits = true;
    try {
      for await (const event of stream) {
        if (signal.aborted) return;
        if (event.type === 'execution-started') {
          // Another stream may show it already; one is enough.
          if (this.#followed === event.executionId) break;
          mine = event.executionId;
          this.#waits = false;
          this.#follow(mine);
          this.#refresh();
        }
        if (mine !== null) this.#transcript.apply(event);
        if (event.type === 'done') break;
      }
    } catch {
      // The turn goes on; the read below finds it.
    }
    if (signal.aborted) return;
    this.#waits = false;
    if (mine !== null && this.#followed === mine) this.#followed = null;
    this.#elements.onChange();
    this.#refresh();
  }

  get #streaming() {
    return this.#followed !== null || this.#waits;
  }

  #follow(executionId) {
    this.#followed = executionId;
    this.#transcript.follow(executionId);
    this.#showRunning(executionId);
  }

  /** Reads transcript and queue. An update that arrives meanwhile causes another read. */
  async #refresh() {
    if (this.#reading !== null) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#read(this.#visit.signal).catch((error) => this.#say(error.message));
    await this.#reading;
    this.#reading = null;
    if (!this.#again) return;
    this.#again = false;
    await this.#refresh();
  }

  async #read(signal) {
    const { base, threadId } = this;
    if (base === null || threadId === null) return;
    const followedBefore = this.#followed;
    const path = `${base}/${threadId}`;
    const [transcript, queue] = await Promise.all([
      json('GET', `${path}/messages`, { signal }),
      json('GET', `${path}/queue`, { signal }).catch(() => ({ items: [] })),
    ]).catch((error) => (signal.aborted ? [] : Promise.reject(error)));
    if (signal.aborted || transcript === undefined) return;
    this.#showPending(queue.items);
    // What is followed is ahead of any read, and its end causes another one. Where it ended during this read, read again.
    if (this.#followed !== followedBefore) this.#again = true;
    if (this.#followed !== null || this.#again) return;
    const { messages, openSuspensions, activeExecutionId } = transcript;
    this.#transcript.show(messages);
    this.#cards.show(openSuspensions);
    // What is suspended can be stopped like what runs.
    this.#showRunning(activeExecutionId ?? openSuspensions[0]?.executionId ?? null);
    // A continuation adds to a message that is here already: it is shown by reading again at each of its notifications.
    const isContinuation = messages.find((message) => message.executionId === activeExecutionId)?.role === 'assistant';
    if (activeExecutionId !== null && !isContinuation) this.#followRunning(path, activeExecutionId, signal);
  }

  /** Answers a call that waits. Without a stream: a browser has few, and notifications tell how it goes on. */
  async #answer({ runId, toolCallId }, resumeData) {
    const headers = { Accept: 'application/json' };
    await json('POST', `${this.base}/resume`, { body: { runId, toolCallId, resumeData }, headers });
    this.#refresh();
  }

  /** After a reload, or in another tab: the events of what runs, from its start. */
  async #followRunning(path, executionId, signal) {
    this.#followed = executionId;
    try {
      const response = await request('GET', `${path}/executions/${executionId}/events`, { signal });
      if (signal.aborted) return;
      this.#transcript.follow(executionId);
      for await (const event of events(response)) {
        if (signal.aborted) return;
        this.#transcript.apply(event);
        if (event.type === 'done') break;
      }
    } catch {
      await pause(RECONNECT_MS);
    }
    if (signal.aborted) return;
    if (this.#followed === executionId) this.#followed = null;
    this.#elements.onChange();
    this.#refresh();
  }

  async #stop() {
    const { stop } = this.#elements;
    stop.disabled = true;
    try {
      await json('DELETE', `${this.base}/${this.threadId}/executions/${stop.dataset.execution}`);
    } catch (error) {
      this.#say(`Not stopped: ${error.message}`);
    } finally {
      stop.disabled = false;
    }
  }

  #showPending(items) {
    this.#elements.pending.replaceChildren(
      ...items.map(({ message, attachments }) => {
        const row = document.createElement('li');
        row.textContent = `Waiting: ${message || attachments.map(({ fileName }) => fileName).join(', ')}`;
        return row;
      }),
    );
  }

  #showRunning(executionId) {
    this.#elements.stop.hidden = executionId === null;
    this.#elements.stop.dataset.execution = executionId ?? '';
  }

  #say(text) {
    this.#elements.problem.textContent = text;
  }
}
