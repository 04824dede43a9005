/** Pause → update → resume: requests that run are frozen in place, the new weights come in, the engine names them from then on. */
import type { LearningStack } from './stack.ts';

export async function updateWeights(
  stack: LearningStack,
  { version, install }: { version: string; install: () => void },
  signal: AbortSignal,
): Promise<void> {
  await stack.engine.pause('in_place', signal);
  try {
    install();
    const answer = await fetch(`${stack.engineUrl}/update_weight_version`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ new_version: version }),
      signal,
    });
    if (!answer.ok) throw new Error(`the engine refused the new version with ${answer.status}`);
  } finally {
    await stack.engine.continue(signal);
  }
}
