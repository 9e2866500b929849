/** A button or an input with its label, named once. */
function control(name, attributes) {
  return Object.assign(document.createElement(name), attributes);
}

function button(text, className, onClick) {
  const node = control('button', { type: 'button', className, textContent: text });
  node.addEventListener('click', onClick);
  return node;
}

/** Cards for the calls that wait for a person: approve or deny one, answer a question. What is typed into a card stays. */
export class Cards {
  #root;
  #answer;
  #cards = new Map();

  /**
   * @param root the list that the cards stand in
   * @param answer takes a suspension and its resumeData; throws where the answer was not taken
   */
  constructor(root, answer) {
    this.#root = root;
    this.#answer = answer;
  }

  /** Shows a card for each of these suspensions, and no other. */
  show(suspensions) {
    const wanted = new Map(suspensions.map((suspension) => [suspension.toolCallId, suspension]));
    for (const [id, card] of this.#cards) {
      if (wanted.has(id)) continue;
      card.remove();
      this.#cards.delete(id);
    }
    for (const [id, suspension] of wanted) {
      if (this.#cards.has(id)) continue;
      const card = this.#card(suspension);
      this.#cards.set(id, card);
      this.#root.append(card);
    }
  }

  #card(suspension) {
    const card = control('li', { className: 'card' });
    const problem = control('p', { className: 'failure' });
    problem.setAttribute('role', 'alert');
    const send = async (resumeData) => {
      problem.textContent = '';
      for (const node of card.querySelectorAll('button')) node.disabled = true;
      try {
        await this.#answer(suspension, resumeData);
      } catch (error) {
        problem.textContent = error.message;
        for (const node of card.querySelectorAll('button')) node.disabled = false;
      }
    };
    card.append(...(suspension.kind === 'question' ? question(suspension, send) : approval(suspension, send)), problem);
    return card;
  }
}

function approval({ toolName, input }, send) {
  const shown = typeof input === 'string' ? input : JSON.stringify(input, null, 2);
  const reason = control('input', { placeholder: 'Reason, if you deny', maxLength: 10_000 });
  reason.setAttribute('aria-label', 'Reason, if you deny');
  const deny = () => send({ approved: false, ...(reason.value.trim() === '' ? {} : { reason: reason.value }) });
  const buttons = control('div', { className: 'buttons' });
  buttons.append(
    reason,
    button('Deny', 'quiet', deny),
    button('Approve', '', () => send({ approved: true })),
  );
  return [control('h2', { textContent: `May ${toolName} run?` }), control('pre', { textContent: shown }), buttons];
}

function question({ input }, send) {
  // One that was too long for an event is the beginning of its JSON.
  const { question: text, choices = [], multiple = false } = typeof input === 'string' ? { question: input } : input;
  const typed = control('input', { placeholder: 'Your answer' });
  typed.setAttribute('aria-label', 'Your answer');
  const form = control('form', { className: 'buttons' });
  form.append(typed, control('button', { type: 'submit', textContent: 'Answer' }));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (typed.value.trim() !== '') send({ answer: typed.value });
  });
  const take = (choice) => {
    // Several may be taken: they are gathered in the field. Else the choice is the answer.
    if (multiple) typed.value = [typed.value, choice].filter(Boolean).join(', ');
    else send({ answer: choice });
  };
  const row = control('div', { className: 'choices' });
  row.append(...choices.map((choice) => button(choice, 'quiet', () => take(choice))));
  return [control('h2', { textContent: text }), row, form];
}
