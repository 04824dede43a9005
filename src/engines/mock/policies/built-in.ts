import type { Policy } from '../policy.ts';
import { echo } from './echo.ts';
import { randomText } from './random-text.ts';
import { terminusDone } from './terminus-done.ts';
import { toolScript } from './tool-script.ts';

export const builtInPolicies: ReadonlyMap<string, Policy> = new Map([
  ['echo', echo],
  ['terminus-done', terminusDone],
  ['random-text', randomText],
  ['tool-script', toolScript],
]);
