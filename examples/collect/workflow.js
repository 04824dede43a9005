// The agent: it thinks aloud a few times before it answers. The grader: whether the answer is the label.

/** @typedef {{ role: string, content: string }} Message */

const turns = 3;

export class GuessWorkflow {
  /** @param {{ prompt: Message[], model: { baseUrl: string, apiKey: string }, signal: AbortSignal }} ctx */
  async run({ prompt, model, signal }) {
    const messages = [...prompt];
    for (let turn = 1; turn <= turns; turn += 1) {
      const last = turn === turns;
      messages.push(await ask(messages, model, signal));
      if (!last) messages.push({ role: 'user', content: 'Are you sure? Answer again.' });
    }
    return { messages, metrics: { turns } };
  }
}

export class GuessGrader {
  /** @param {{ sample: { messages: Message[] }, label: string, setReward: (reward: number) => void }} ctx */
  grade({ sample, label, setReward }) {
    setReward(sample.messages.at(-1)?.content === label ? 1 : 0);
  }
}

/**
 * @param {Message[]} messages
 * @param {{ baseUrl: string, apiKey: string }} model
 * @param {AbortSignal} signal
 */
async function ask(messages, model, signal) {
  const response = await fetch(`${model.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${model.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', messages }),
    signal,
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const { choices } = await response.json();
  return { role: 'assistant', content: choices[0].message.content ?? '' };
}
