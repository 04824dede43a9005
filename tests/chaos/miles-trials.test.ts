import assert from 'node:assert/strict';
import { test } from 'node:test';
import { milesTrials } from './miles-trials.ts';
import { whyNoTrials } from './trial-servers.ts';

for (const plugin of ['stock', 'slipway_miles'] as const)
  test(
    `trials of the plugin ${plugin} run in sandboxes, and a flush leaves nothing of its own instance and everything of another`,
    { skip: whyNoTrials('native') ?? false, timeout: 300_000 },
    async () => {
      const size = {
        completed: 0,
        live: 1,
        concurrency: 2,
        latencyMs: 400,
        goneWithinMs: 30_000,
        plugin,
      };
      const report = await milesTrials(size);
      assert.deepEqual(report.problems, []);
      assert.deepEqual(report.flushAnswer, [
        200,
        { session_server_instance_id: 'flushed', session_server_id: null, cancelled: 1 },
      ]);
      // The look that finds nothing afterwards found the sandbox before.
      assert.ok(report.before > 0);
      assert.notEqual(report.goneMs, null);
      assert.deepEqual(
        report.flushed.map(({ status, result }) => [status, result?.exit_status, result?.reward]),
        [[200, 'Flushed', 0]],
      );
      const [other] = report.others;
      assert.equal(other?.result?.exit_status, 'Submitted');
      assert.deepEqual(other.result.eval_report, { reward: 1 });
      assert.equal(typeof other.result.agent_metrics['n_input_tokens'], 'number');
      assert.equal(typeof other.result.agent_metrics['n_episodes'], 'number');
      assert.equal(typeof other.result.agent_metrics['agent_run_time'], 'number');
    },
  );
