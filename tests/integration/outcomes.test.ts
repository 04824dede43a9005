/** A part of the faults of `npm run prove -- outcomes`, and the controls of their judge. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeOutcome } from '../chaos/outcomes/judge-outcome.ts';
import { crowdedRows, localRows } from '../chaos/outcomes/local-rows.ts';
import { nativeRows } from '../chaos/outcomes/native-rows.ts';
import { runOutcomes } from '../chaos/outcomes/run-outcomes.ts';
import { tamperedOutcomes } from '../chaos/outcomes/tampered-outcomes.ts';

const lateAfterSolving = 'agent-late-after-solving';
const chosen: ReadonlySet<string> = new Set([
  ...['no-fault', 'no-fault-model', 'task-missing', 'model-unnamed', 'image-missing'],
  ...['start-fails', 'sandbox-lost', 'agent-unstoppable', 'agent-exits-at-once', lateAfterSolving],
  ...['engine-500', 'engine-429', 'engine-401', 'verifier-crashes', 'reward-nan'],
  ...['reward-planted', 'step-fails', 'callbacks-deaf'],
  ...['local-no-fault', 'local-exits', 'local-busy-loop', 'local-no-sample', 'local-grader-nan'],
]);

describe('injected faults', { timeout: 120_000 }, () => {
  it('are said as specified on the API and on the wire, and what is not is found', async () => {
    const rows = [...nativeRows, ...localRows].filter(({ name }) => chosen.has(name));
    const reports = await runOutcomes({ rows: [...rows, ...crowdedRows], concurrency: 4 });
    assert.equal(reports.length, chosen.size + crowdedRows.length);
    for (const { row, problems } of reports) assert.deepEqual(problems, [], row.name);

    const control = reports.find(({ row }) => row.name === lateAfterSolving);
    assert.ok(control !== undefined);
    const tampered = tamperedOutcomes(control.evidence);
    assert.equal(tampered.length, 13);
    for (const [what, evidence] of tampered)
      assert.notDeepEqual(judgeOutcome(control.row, evidence), [], what);
  });
});

describe('the table of faults', () => {
  const rows = [...nativeRows, ...localRows, ...crowdedRows];

  it('has names of its own, and more than thirty faults', () => {
    const names = rows.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    assert.ok(rows.filter(({ api }) => api.cause !== null).length >= 30);
  });

  it('promises a number on the wire only where nothing failed and there is a verdict', () => {
    for (const { name, api, grader } of rows)
      if (grader.reward !== null) {
        assert.equal(api.cause, null, name);
        assert.ok(Object.values(api.verdict ?? {}).includes(grader.reward), name);
      }
  });
});
