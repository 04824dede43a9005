export type { NativePorts, NativeTask, NativeTrials, TrialHooks } from '../shared/trial-ports.ts';
