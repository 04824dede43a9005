import { RolloutError } from '../../core/errors.ts';

/** `3,7,10-20`: rows of the file, the first is 0. Sorted, each once. CONFIG_INVALID for anything else. */
export function readRowSelection(text: string): (row: number) => boolean {
  const ranges = text.split(',').map((part) => {
    const [, from, to] = /^\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*$/.exec(part) ?? [];
    const range = { from: Number(from), to: Number(to ?? from) };
    if (from === undefined || range.to < range.from)
      throw new RolloutError(
        'CONFIG_INVALID',
        `${JSON.stringify(part)} is neither a row nor a range`,
        {
          phase: 'config',
          field: '--rows',
          remedy: 'Write rows and ranges with commas, the first row is 0: 3,7,10-20.',
        },
      );
    return range;
  });
  return (row) => ranges.some(({ from, to }) => row >= from && row <= to);
}
