import { describe } from 'node:test';
import { queueKinds } from '../support/rollout-service.ts';
import { serverSuite } from './server-suite.ts';

describe('the same suite on every queue', { concurrency: true }, () => {
  for (const queue of queueKinds) serverSuite(queue);
});
