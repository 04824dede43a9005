/** A process that takes the lock named on its command line, says so, and holds it until it is killed or told to let go. */
import { systemClock } from '../../../src/core/clock.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';

const lock = new FileLocks(systemClock).tryAcquire(process.argv[2]!);
process.stdout.write(lock === null ? 'refused\n' : 'held\n');
process.stdin.once('data', () => {
  lock?.release();
  process.stdout.write('released\n');
});
process.stdin.once('end', () => process.exit(0));
