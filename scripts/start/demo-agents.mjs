/** The demo's agents: one that a newcomer talks to, and one that it hands work to. */
export const names = { assistant: 'Demo agent', researcher: 'Demo researcher' };

/** @param {object} model with its credential; @param {string} toolsUrl see `startDemoTools` */
export function researcher(model, toolsUrl) {
  return {
    instructions:
      'You find things out for another agent in a demo of Turnkeep. Use get_weather for weather and send_postcard for ' +
      'postcards. Answer briefly, with what you found and nothing else.',
    model,
    tools: [weather(toolsUrl), postcard(toolsUrl)],
  };
}

/** @param {string} [researcherId] the agent that it may hand work to */
export function assistant(model, toolsUrl, researcherId) {
  return {
    instructions:
      'You are a friendly assistant in a demo of Turnkeep. Answer briefly. Ask get_weather about the weather. ' +
      'send_postcard sends a postcard; the user is asked for approval by itself, so do not ask before. When you need to ask ' +
      'the user something, use ask_user. Hand what the user wants researched to researcher.',
    model,
    tools: [
      weather(toolsUrl),
      postcard(toolsUrl),
      {
        type: 'question',
        name: 'ask_user',
        description: 'Asks the user a question, with choices where there are some.',
      },
      ...(researcherId ? [delegate(researcherId)] : []),
    ],
  };
}

function delegate(agentId) {
  const description = 'Another agent that looks up weather and sends postcards.';
  return { type: 'delegate', name: 'researcher', description, agentId };
}

function weather(toolsUrl) {
  return {
    type: 'http',
    name: 'get_weather',
    description: 'The weather in a city now.',
    inputSchema: {
      type: 'object',
      properties: { city: { type: 'string', description: 'e.g. Lisbon' } },
      required: ['city'],
      additionalProperties: false,
    },
    method: 'POST',
    url: `${toolsUrl}/weather`,
  };
}

function postcard(toolsUrl) {
  return {
    type: 'http',
    name: 'send_postcard',
    description: 'Sends a postcard. A person approves each one first.',
    inputSchema: {
      type: 'object',
      properties: { to: { type: 'string', description: 'Whom it is for' }, text: { type: 'string' } },
      required: ['to', 'text'],
      additionalProperties: false,
    },
    method: 'POST',
    url: `${toolsUrl}/postcard`,
    requireApproval: true,
  };
}
