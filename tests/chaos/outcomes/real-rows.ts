/** Faults that only a real sandbox has, and those of a model as terminus-2 meets them. */
import { answerTask, image } from '../../trial/trial-bench.ts';
import { broken, fine, judged, testsSay, ungraded } from './native-rows.ts';
import type { OutcomeRow } from './outcome-row.ts';

const little = (tests: string) => ({
  ...testsSay(tests),
  'task.toml': `[environment]\ndocker_image = "${image}"\nmemory_mb = 64\n`,
});
const zero = 'echo 0 > /logs/verifier/reward.txt';
/** Takes memory until it is killed. */
const hog = 'head -c 400000000 /dev/zero | tail -c 399999999 > /dev/null; exit ${PIPESTATUS[1]}';

const inSandbox: readonly OutcomeRow[] = [
  fine(1, { name: 'real-no-fault', message: null }),
  judged('AGENT_EXIT_NONZERO', 0, true, {
    ...{ name: 'real-agent-out-of-memory', files: little(zero), command: hog },
    message: 'the command exited with 137',
  }),
  ungraded('verifier', 'REWARD_MISSING', false, {
    ...{ name: 'real-tests-out-of-memory', agentDoes: 'idle' },
    ...{ files: little(`${hog} && ${zero}`), message: /./ },
  }),
  judged('AGENT_EXIT_NONZERO', 0, true, {
    ...{ name: 'real-disk-full', files: testsSay(zero) },
    command: 'dd if=/dev/zero of=/dev/full bs=1M count=1 2>/dev/null',
    message: 'the command exited with 1',
  }),
  judged('AGENT_TIMEOUT', 1, false, {
    ...{ name: 'real-late-after-solving', request: { agent_timeout_sec: 2 } },
    command: "mkdir -p /app && echo yes > /app/answer; trap '' TERM; sleep 600",
    message: 'the agent ran longer than 2 s',
  }),
  ungraded('verifier', 'VERIFIER_TIMEOUT', false, {
    ...{ name: 'real-tests-hang', request: { grader_timeout_sec: 1 } },
    files: testsSay("trap '' TERM; echo 1 > /logs/verifier/reward.txt; sleep 600; sleep 600"),
    message: 'the test script ran longer than 1 s',
  }),
  ungraded('verifier', 'REWARD_MISSING', false, {
    name: 'real-reward-planted',
    command: 'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt',
    ...{ files: testsSay('true'), message: /./ },
  }),
  broken('environment', 'IMAGE_NOT_FOUND', false, {
    name: 'real-image-missing',
    files: { ...answerTask, 'task.toml': '[environment]\ndocker_image = "no.such/image:1"\n' },
    message: /no\.such\/image/,
  }),
];

const ofTerminus: readonly OutcomeRow[] = [
  broken('model-call', 'ENGINE_UNAVAILABLE', true, {
    ...{ name: 'terminus-500', engine: 'status-500', message: /500/ },
  }),
  broken('model-call', 'ENGINE_OVERLOADED', true, {
    ...{ name: 'terminus-429', engine: 'status-429', message: /429|slow down/ },
  }),
  broken('model-call', 'ENGINE_UNAUTHORIZED', false, {
    ...{ name: 'terminus-401', engine: 'status-401', message: /key/ },
  }),
  broken('model-call', 'CONTEXT_OVERFLOW', false, {
    ...{ name: 'terminus-overflow', engine: 'overflow', message: /context/ },
  }),
  broken('model-call', 'ENGINE_RESPONSE_INVALID', true, {
    ...{ name: 'terminus-garbage', engine: 'garbage', message: /./ },
  }),
  {
    ...broken('agent', 'AGENT_TIMEOUT', true, {
      ...{ name: 'terminus-silent', engine: 'nothing', request: { agent_timeout_sec: 5 } },
      message: /^the agent ran longer than 5 s \(ENGINE_STALLED/,
    }),
    // The model failed, not the agent: nothing to train on, and worth another try.
    api: {
      ...{ stage: 'agent', cause: 'AGENT_TIMEOUT', trainable: false, retryable: true },
      verdict: { reward: 0 },
    },
  },
];

export const realRows: readonly OutcomeRow[] = [
  ...inSandbox.map((row): OutcomeRow => ({ ...row, server: 'sandbox' })),
  ...ofTerminus.map((row): OutcomeRow => ({ ...row, server: 'terminus' })),
];
