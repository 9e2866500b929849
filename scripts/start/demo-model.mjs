/**
 * The demo agent's model, by the environment: an OpenAI-compatible endpoint, Anthropic, or the scripted model
 * inside the product, which needs no key.
 * @param {NodeJS.ProcessEnv} env
 * @returns {{model: {provider: string, model: string, baseUrl?: string}, apiKey?: string}}
 */
export function demoModel(env) {
  if (env.OPENAI_BASE_URL || env.OPENAI_API_KEY)
    return {
      model: {
        provider: 'openai-compatible',
        model: env.OPENAI_MODEL || 'gpt-4o-mini',
        baseUrl: env.OPENAI_BASE_URL || 'https://api.openai.com/v1',
      },
      ...keyOf(env.OPENAI_API_KEY),
    };
  if (env.ANTHROPIC_API_KEY)
    return {
      model: { provider: 'anthropic', model: env.ANTHROPIC_MODEL || 'claude-sonnet-5-5' },
      ...keyOf(env.ANTHROPIC_API_KEY),
    };
  return { model: { provider: 'demo', model: 'demo' } };
}

function keyOf(apiKey) {
  return apiKey ? { apiKey } : {};
}
