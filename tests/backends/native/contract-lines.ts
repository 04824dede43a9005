/** What the native backend promises about its configuration, a line each; `npm run prove -- native` prints them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ExecutionRequest } from '../../../src/backends/execution-backend.ts';
import { readHarborTask } from '../../../src/backends/native/harbor-task.ts';
import { compileNativeOptions } from '../../../src/backends/native/native-options.ts';
import { nativeTrialConfig } from '../../../src/backends/native/native-trial-config.ts';
import { requestFor } from './native-bench.ts';

export type Fields = Readonly<Record<string, unknown>>;
export type Line = readonly [what: string, check: () => void | Promise<void>];

/** A test per line. */
export function lines(title: string, rows: readonly Line[]): void {
  describe(title, () => {
    for (const [what, check] of rows) it(what, check);
  });
}

/** A mistake in the options is CONFIG_INVALID, in these words. */
export const refused = (options: Fields, words: RegExp) => (): void => {
  assert.throws(() => compileNativeOptions(options), { code: 'CONFIG_INVALID', message: words });
};

export const at = { entry: readHarborTask({ harbor_task: '/task' }).entry, trialsDir: '/trials' };

export function configOf(options: Fields, over: Partial<ExecutionRequest> = {}) {
  return nativeTrialConfig(requestFor('/task', over), compileNativeOptions(options), at);
}

export const custom = (binding: string, config: Fields = {}): Fields => ({
  binding,
  agent_config: { import_path: 'my_agents.solver:Solver', ...config },
});
export const installed = 'custom-installed-chat-completions';
