import type { Agent } from '../agent.ts';

/** Does nothing: shows what a task's verifier says about an untouched environment. */
export function nopAgent(): Agent {
  return {
    name: 'nop',
    version: '1.0.0',
    capabilities: { resume: false, loadTrajectory: false, ignoresTrajectory: true, windows: true },
    hostFiles: [],
    hostOnlyVariables: [],
    setup: () => Promise.resolve(),
    run: () => Promise.resolve(),
  };
}
