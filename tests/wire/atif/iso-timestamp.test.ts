import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isIsoTimestamp } from '../../../src/wire/atif/iso-timestamp.ts';

describe('timestamps of ATIF', () => {
  const read = [
    ...['2026-03-01', '20260301', '2026-W09-7', '2026W097', '2020-W53-7', '2024-02-29'],
    ...['2026-03-01T10:30:59.123Z', '2026-03-01 10:30', '2026-03-01T10:30.5', '2026-03-01T10,5'],
    ...['2026-03-01T103059+0530', '2026-03-01T10:30:59,1-23:59', '2026-03-01Z'],
  ];
  for (const text of read) test(`${text} is one`, () => assert.ok(isIsoTimestamp(text)));

  const refused = [
    ...['', 'yesterday', '2026', '2026-3-1', '2026-02-29', '2021-W53', '2026-W01-8', '0000-01-01'],
    ...['2026-03-01T', '2026-03-01T24:00', '2026-03-01T10:60', '2026-03-01T10:30:59.'],
    ...['2026-03-01T10:30z', '2026-03-01T10:30+24:00', '2026-03-01T10:3059', '2026-03-01TT10:30'],
  ];
  for (const text of refused) test(`'${text}' is none`, () => assert.ok(!isIsoTimestamp(text)));
});
