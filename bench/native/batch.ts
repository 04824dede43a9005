import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');
export const slipway = path.join(root, 'bin/slipway.js');

/** The same trials for every way of running them. */
export interface Batch {
  readonly agent: 'oracle' | 'terminus-2';
  readonly count: number;
  /** How many run at once. */
  readonly concurrency: number;
  /** Absolute. */
  readonly taskDir: string;
  readonly modelUrl: string;
}
