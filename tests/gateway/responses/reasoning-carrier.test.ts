import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  openReasoning,
  sealReasoning,
} from '../../../src/gateway/dialects/responses/reasoning-carrier.ts';

describe('the carrier of reasoning', () => {
  for (const text of ['', 'Hm.', '\ufeffGrüße\r\n\u0000 🙂 漢', ' '.repeat(1_000)])
    it(`brings back ${JSON.stringify(text.slice(0, 20))} as it was`, () => {
      const carrier = sealReasoning(text);
      assert.match(carrier, /^[A-Za-z0-9_-]+$/);
      assert.equal(openReasoning(carrier), text);
    });

  for (const foreign of ['', 'gAAAAABo-foreign==', 'AQ==', 'not base64 at all', 'AYD_', 'AkhtLg'])
    it(`takes ${JSON.stringify(foreign)} for another server's`, () => {
      assert.equal(openReasoning(foreign), null);
    });
});
