/** The faults of `npm run prove -- diagnostics`, one server for all, and the controls of their judge. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { diagnosticPhases } from '../../src/backends/shared/trial-diagnostics.ts';
import { diagnosticsRows } from '../chaos/diagnostics/diagnostics-rows.ts';
import { judgeDiagnostics } from '../chaos/diagnostics/judge-diagnostics.ts';
import { runDiagnostics } from '../chaos/diagnostics/run-diagnostics.ts';
import { tamperedDiagnostics } from '../chaos/diagnostics/tampered-diagnostics.ts';

describe('the diagnostics of a native rollout', { timeout: 120_000 }, () => {
  it('are the same object in callbacks, log and archive, in every phase, and what is not is found', async () => {
    const reports = await runDiagnostics(diagnosticsRows);
    assert.equal(reports.length, diagnosticsRows.length);
    for (const { row, problems } of reports) assert.deepEqual(problems, [], row.name);
    const tampered = tamperedDiagnostics(reports);
    assert.equal(tampered.length, 15);
    for (const [what, row, evidence] of tampered)
      assert.notDeepEqual(judgeDiagnostics(row, evidence), [], what);
  });

  it('have a row for each phase', () => {
    const phases = new Set(diagnosticsRows.map(({ phase }) => phase));
    assert.deepEqual([...phases].sort(), [...diagnosticPhases].sort());
  });
});
