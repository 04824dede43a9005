import type { ConformanceCase } from '../adapter.ts';
import { composeCases } from './compose.ts';
import { controlCases } from './control.ts';
import { downloadCases } from './download.ts';
import { execCases } from './exec.ts';
import { imageCases } from './images.ts';
import { interactiveCases } from './interactive.ts';
import { inspectCases } from './inspect.ts';
import { isolationCases } from './isolation.ts';
import { killCases } from './kill.ts';
import { layerCases } from './layers.ts';
import { lifecycleCases } from './lifecycle.ts';
import { limitCases } from './limits.ts';
import { networkCases } from './network.ts';
import { startCases } from './start.ts';
import { uploadCases } from './upload.ts';

export const environmentCases: readonly ConformanceCase[] = [
  ...startCases,
  ...execCases,
  ...controlCases,
  ...interactiveCases,
  ...uploadCases,
  ...downloadCases,
  ...killCases,
  ...inspectCases,
  ...limitCases,
  ...isolationCases,
  ...networkCases,
  ...imageCases,
  ...layerCases,
  ...lifecycleCases,
  ...composeCases,
];
