import type { EngineCase } from '../adapter.ts';
import { answerCases } from './answers.ts';
import { controlCases } from './control.ts';
import { failureCases } from './failures.ts';

export const engineCases: readonly EngineCase[] = [
  ...answerCases,
  ...controlCases,
  ...failureCases,
];
