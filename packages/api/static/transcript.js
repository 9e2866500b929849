/** Everything that people or models wrote reaches the page as text nodes, never as HTML. */
function element(name, className, ...children) {
  const node = document.createElement(name);
  node.className = className;
  node.append(...children);
  return node;
}

function shown(value) {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '');
}

/** One assistant or user message; grows by `text`, `reasoning` and `tool`. */
class MessageBox {
  #tools = new Map();

  constructor(role, executionId) {
    this.role = role;
    this.node = element('article', `message ${role}`);
    this.node.dataset.execution = executionId ?? '';
    this.status = element('div', 'status');
    this.node.append(this.status);
  }

  /** @returns a text node to append to */
  text(text) {
    const content = document.createTextNode(text);
    this.#add(element('div', 'text', content));
    return content;
  }

  reasoning(text) {
    const content = document.createTextNode(text);
    this.#add(element('details', '', element('summary', '', 'Reasoning'), element('pre', '', content)));
    return content;
  }

  tool(id, toolName) {
    const known = this.#tools.get(id);
    if (known) return known;
    const tool = {
      state: document.createTextNode(' …'),
      input: document.createTextNode(''),
      output: document.createTextNode(''),
    };
    const summary = element('summary', '', `Tool ${toolName}`, tool.state);
    tool.node = element('details', 'tool', summary, element('pre', '', tool.input), element('pre', '', tool.output));
    this.#add(tool.node);
    this.#tools.set(id, tool);
    return tool;
  }

  failure(text) {
    this.#add(element('div', 'failure', text));
  }

  setStatus(status) {
    this.status.textContent = { running: 'Writing …', success: '' }[status] ?? status ?? '';
  }

  #add(node) {
    this.node.insertBefore(node, this.status);
  }
}

/** The conversation on the screen: what a read gave, then what the running execution's events add. */
export class Transcript {
  #root;
  #open = new Map();
  #current = null;
  #executionId = null;
  #continuable = null;

  constructor(root) {
    this.#root = root;
  }

  /** Replaces everything by the messages of a read. */
  show(messages) {
    this.#keepingPlace(() => {
      this.#root.replaceChildren();
      for (const message of messages) this.#addMessage(message);
    });
    this.#begin(null);
  }

  /** From here on events of this execution come from its start: what a read showed of it goes. */
  follow(executionId) {
    for (const node of [...this.#root.children]) if (node.dataset.execution === executionId) node.remove();
    this.#begin(executionId);
  }

  /** Adds what an event of the followed execution tells. */
  apply(event) {
    this.#keepingPlace(() => this.#apply(event));
  }

  #begin(executionId) {
    this.#executionId = executionId;
    this.#current = null;
    this.#continuable = null;
    this.#open.clear();
  }

  #apply(event) {
    switch (event.type) {
      case 'snapshot':
        this.follow(this.#executionId);
        for (const message of event.messages) this.#addMessage(message);
        return;
      case 'execution-started':
        if (event.message) this.#addUser(event.message);
        this.#assistant();
        return;
      case 'message-steered':
        this.#current?.setStatus('success');
        this.#addUser(event.message);
        this.#current = null;
        return;
      case 'text-start':
      case 'reasoning-start':
        this.#open.set(event.id, this.#block(event.type.slice(0, -6)));
        return;
      case 'text-delta':
      case 'reasoning-delta':
        this.#open.get(event.id)?.appendData(event.delta);
        return;
      case 'tool-input-delta':
        this.#assistant().tool(event.toolCallId, '').input.appendData(event.delta);
        return;
      case 'tool-input-start':
        this.#assistant().tool(event.toolCallId, event.toolName);
        return;
      case 'tool-call':
        this.#assistant().tool(event.toolCallId, event.toolName).input.data = shown(event.input);
        return;
      case 'tool-result':
        this.#result(this.#assistant().tool(event.toolCallId, event.toolName), event);
        return;
      case 'tool-call-suspended':
        this.#assistant().tool(event.toolCallId, event.toolName).state.data = ': waits for a person';
        return;
      case 'subagent-chunk':
        if (event.chunk.delta) this.#assistant().tool(event.toolCallId, '').output.appendData(event.chunk.delta);
        return;
      case 'error':
        this.#assistant().failure(event.message);
        return;
      case 'done':
        this.#assistant().setStatus(event.status);
    }
  }

  #result(tool, { output, isError }) {
    tool.state.data = isError ? ': failed' : ': done';
    tool.output.data = shown(output);
  }

  /** A text that a snapshot broke off is announced again, and goes on where it ends. */
  #block(kind) {
    const box = this.#assistant();
    const continued = this.#continuable?.kind === kind ? this.#continuable.content : null;
    this.#continuable = null;
    return continued ?? (kind === 'text' ? box.text('') : box.reasoning(''));
  }

  #assistant() {
    if (this.#current === null) {
      this.#current = this.#add(new MessageBox('assistant', this.#executionId));
      this.#current.setStatus('running');
    }
    return this.#current;
  }

  #addUser({ text, attachments = [] }) {
    const box = this.#add(new MessageBox('user', this.#executionId));
    if (text !== '') box.text(text);
    for (const { fileName } of attachments) box.text(`📎 ${fileName}`);
  }

  #addMessage({ role, executionId, status, content }) {
    const box = this.#add(new MessageBox(role, executionId));
    this.#continuable = null;
    for (const part of content) this.#addPart(box, part);
    if (role === 'assistant') {
      box.setStatus(status);
      this.#current = box;
    }
  }

  #addPart(box, part) {
    this.#continuable = null;
    if (part.type === 'text') this.#continuable = { kind: 'text', content: box.text(part.text) };
    if (part.type === 'reasoning') this.#continuable = { kind: 'reasoning', content: box.reasoning(part.text) };
    if (part.type === 'file') box.text(`📎 ${part.fileName}`);
    if (part.type !== 'tool-call') return;
    const tool = box.tool(part.toolCallId, part.toolName);
    tool.input.data = shown(part.input);
    tool.state.data = `: ${part.state}`;
    tool.output.data = shown(part.error ?? part.output ?? part.child?.text ?? '');
  }

  #add(box) {
    this.#root.append(box.node);
    return box;
  }

  /** Stays at the end where the reader is at the end; else leaves the reader where they are. */
  #keepingPlace(change) {
    const root = this.#root;
    const atEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 40;
    change();
    if (atEnd) root.scrollTop = root.scrollHeight;
  }
}
