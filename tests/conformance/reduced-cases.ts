/**
 * Of the cases of remote environments and of plain processes, those that `npm test` has time for: one of each kind of thing that can go wrong.
 * `npm run prove -- conformance` and `npm run prove -- providers` run all of them, by the variable.
 */
const cases: readonly string[] = [
  ...['start.report', 'start.admission', 'start.workdir', 'start.env', 'start.absent-image'],
  ...['exec.streams-and-code', 'exec.truncation', 'exec.output-as-it-comes', 'exec.stdin'],
  ...['exec.env-not-in-argv', 'exec.cwd', 'exec.user-name', 'exec.user-unknown', 'exec.timeout'],
  ...['control.streams-and-code', 'control.timeout', 'control.dead-shell'],
  ...['interactive.echo', 'interactive.backpressure', 'interactive.kill'],
  ...['upload.file', 'upload.folder', 'upload.file-odd-name', 'download.folder', 'download.file'],
  ...['download.links-skipped', 'download.missing', 'kill.detached', 'kill.survivors'],
  ...['network.none', 'network.switch', 'stop.keeps-files', 'alive.removed-from-outside'],
  ...['destroy.during-exec', 'destroy.aborted-start', 'destroy.by-name', 'list.labels'],
];

const rollouts: readonly string[] = [
  'grades: begins, then completes, then has a finite reward',
  'fails as a value, with a code and without a reward',
  'is aborted before it has done anything, and twice',
];

const isWhole = process.env['SLIPWAY_WHOLE_CONFORMANCE'] === '1';

export function reducedCases(): readonly string[] | undefined {
  return isWhole ? undefined : cases;
}

/** The same of the backend `native` on remote environments. */
export function reducedRollouts(): readonly string[] | undefined {
  return isWhole ? undefined : rollouts;
}
