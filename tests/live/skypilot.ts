/** The suite of environments on SkyPilot Platform: SKYPILOT_API_SERVER_ENDPOINT and SLIPWAY_LIVE_PYTHON; SLIPWAY_LIVE_IMAGE for another image, HARBOR_SKYPILOT_REGISTRY for Dockerfiles. */
import { never } from '../../src/core/linked-abort.ts';
import { SkypilotProvider } from '../../src/environments/skypilot/skypilot-provider.ts';
import { environmentSuite } from '../conformance/environment-suite.ts';
import { skypilotDeclines, skypilotImages } from '../conformance/skypilot-declines.ts';
import { liveCases, needed } from './live-row.ts';

const [, python = ''] = needed('skypilot', [
  { variable: 'SKYPILOT_API_SERVER_ENDPOINT', what: 'the address of the SkyPilot API server' },
  { variable: 'SLIPWAY_LIVE_PYTHON', what: 'the Python that has the sandbox SDK' },
]);
const registry = process.env['HARBOR_SKYPILOT_REGISTRY'] ?? null;
const provider = (): SkypilotProvider =>
  new SkypilotProvider({ python, registry }, { hostVariables: process.env });

environmentSuite({
  kind: 'skypilot',
  provider,
  image: process.env['SLIPWAY_LIVE_IMAGE'] ?? 'docker.io/library/debian:bookworm',
  declines: [...skypilotDeclines, ...(registry === null ? skypilotImages : [])],
  // Command lines are looked for in the processes of this host, where the cluster's are not.
  only: liveCases.filter(
    (id) =>
      !/^(?:exec\.(?:env-not|timeout|signal)|kill\.|interactive\.(?:kill|signal)|control\.(?:timeout|signal)|isolation\.)/.test(
        id,
      ),
  ),
  leftovers: async (prefix) => {
    const asked = provider();
    try {
      const found = await asked.list(never);
      return found.map(({ name }) => name).filter((name) => name.startsWith(prefix));
    } finally {
      await asked.close();
    }
  },
});
