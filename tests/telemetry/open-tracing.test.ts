import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { openTracing } from '../../src/telemetry/open-tracing.ts';

describe('spans without the packages that they need', () => {
  it('are refused by name of the setting, with what to install', async () => {
    const hooks = registerHooks({
      resolve(specifier, context, next) {
        if (specifier !== '@opentelemetry/sdk-trace') return next(specifier, context);
        throw Object.assign(new Error(`no ${specifier}`), { code: 'ERR_MODULE_NOT_FOUND' });
      },
    });
    try {
      const opened = openTracing({
        ...{ otlpUrl: 'http://127.0.0.1:4318', headers: {}, serviceName: 'slipway' },
        ...{ instanceId: null, exportTimeoutMs: 100 },
      });
      await assert.rejects(
        opened,
        (error) =>
          isRolloutError(error, 'CONFIG_INVALID') &&
          error.field === 'telemetry.otlp_url' &&
          error.remedy?.includes('npm install @opentelemetry/api @opentelemetry/sdk-trace') ===
            true,
      );
    } finally {
      hooks.deregister();
    }
  });
});
