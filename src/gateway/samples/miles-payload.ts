import { open } from 'node:fs/promises';
import { boundary } from '../../core/errors.ts';
import { spillLines } from '../../trajectory/spill.ts';
import { MilesOfLines } from '../../wire/samples/miles-of-lines.ts';

/** What clients of Miles take, of a file of samples. SAMPLES_INVALID. */
export async function milesPayloadOf(file: string, layers: number | null): Promise<Uint8Array> {
  return await boundary(
    { code: 'SAMPLES_INVALID', phase: 'collect', what: 'reading samples' },
    async () => {
      await using handle = await open(file, 'r');
      const lines = new MilesOfLines({ layers });
      for await (const line of spillLines(file, handle)) lines.line(line.toString('utf8'));
      return lines.payload();
    },
  );
}
