/** A workflow that asks its model once, in the dialect that the metadata names. */
import type { WorkflowContext } from '../../../src/backends/local/user-code.ts';

const bodies: Readonly<Record<string, object>> = {
  'chat/completions': { messages: [{ role: 'user', content: 'hi' }] },
  messages: { max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] },
};

export class AskingWorkflow {
  async run({ model, metadata, signal }: WorkflowContext): Promise<unknown> {
    const dialect = String(metadata?.['dialect']);
    const answer = await fetch(`${model?.baseUrl ?? ''}/${dialect}`, {
      ...{ method: 'POST', signal },
      headers: { authorization: `Bearer ${model?.apiKey ?? ''}` },
      body: JSON.stringify({ model: 'm', ...bodies[dialect] }),
    });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return [{ role: 'assistant', content: await answer.text() }];
  }
}
