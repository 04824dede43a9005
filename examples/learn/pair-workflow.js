// The agent and the grader of the rollouts: two questions to the model, one after the other, and the share of right replies.

/** @typedef {{ role: string, content: string }} Message */

export class PairWorkflow {
  /** @param {{ prompt: Message[], metadata: { then: string }, model: { baseUrl: string, apiKey: string }, signal: AbortSignal }} ctx */
  async run({ prompt, metadata, model, signal }) {
    const messages = [...prompt];
    messages.push(await ask(messages, model, signal));
    messages.push({ role: 'user', content: metadata.then });
    messages.push(await ask(messages, model, signal));
    return { messages };
  }
}

export class PairGrader {
  /** @param {{ sample: { messages: Message[] }, label: string, setReward: (reward: number) => void }} ctx */
  grade({ sample, label, setReward }) {
    const replies = sample.messages.filter(({ role }) => role === 'assistant');
    const right = replies.filter(({ content }, index) => content === label[index]);
    setReward(right.length / label.length);
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
    body: JSON.stringify({ model: 'letters', messages }),
    signal,
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const { choices } = await response.json();
  return { role: 'assistant', content: choices[0].message.content ?? '' };
}
