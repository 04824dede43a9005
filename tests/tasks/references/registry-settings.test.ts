import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { readRegistrySettings } from '../../../src/tasks/references/registry-settings.ts';

const harbor = {
  HARBOR_SUPABASE_URL: 'https://registry.example.org/',
  HARBOR_SUPABASE_PUBLISHABLE_KEY: 'k1',
};

await test("our own variables go before Harbor's", () => {
  assert.deepEqual(readRegistrySettings(harbor), {
    baseUrl: 'https://registry.example.org',
    key: 'k1',
  });
  const own = { SLIPWAY_REGISTRY_URL: 'http://127.0.0.1:1/x', SLIPWAY_REGISTRY_KEY: 'k2' };
  assert.deepEqual(readRegistrySettings({ ...harbor, ...own }), {
    baseUrl: 'http://127.0.0.1:1/x',
    key: 'k2',
  });
});

await test('there is no registry without both address and key, and no default', () => {
  assert.equal(readRegistrySettings({}), null);
  assert.equal(readRegistrySettings({ SLIPWAY_REGISTRY_URL: 'https://r.example.org' }), null);
  assert.equal(
    readRegistrySettings({ SLIPWAY_REGISTRY_URL: ' ', SLIPWAY_REGISTRY_KEY: 'k' }),
    null,
  );
});

await test('plain http to another machine, and addresses with secrets in them, are refused without repeating them', () => {
  const bad = [
    'http://r.example.org',
    'https://me:pw@r.example.org',
    'https://r.example.org?k=1',
    'ftp://r',
    'r',
  ];
  for (const url of bad)
    assert.throws(
      () => readRegistrySettings({ ...harbor, HARBOR_SUPABASE_URL: url }),
      (error) =>
        isRolloutError(error, 'CONFIG_INVALID') &&
        error.field === 'HARBOR_SUPABASE_URL' &&
        !error.describe().includes('r.example.org'),
    );
});
