/** The suite of environments on the real service: DAYTONA_API_KEY, and DAYTONA_API_URL and DAYTONA_TARGET where they are not the usual ones. */
import { never } from '../../src/core/linked-abort.ts';
import { DaytonaProvider } from '../../src/environments/daytona/daytona-provider.ts';
import { daytonaDeclines } from '../conformance/daytona-declines.ts';
import { environmentSuite } from '../conformance/environment-suite.ts';
import { liveCases, needed } from './live-row.ts';

const [apiKey = ''] = needed('daytona', [
  { variable: 'DAYTONA_API_KEY', what: 'a key that may write sandboxes and snapshots' },
]);
const { DAYTONA_API_URL: apiUrl = '', DAYTONA_TARGET: target = '' } = process.env;
const provider = (): DaytonaProvider =>
  new DaytonaProvider({
    apiKey,
    ...(apiUrl === '' ? {} : { apiUrl }),
    ...(target === '' ? {} : { target }),
  });
const looking = provider();

environmentSuite({
  kind: 'daytona',
  provider,
  image: process.env['SLIPWAY_LIVE_IMAGE'] ?? 'debian:bookworm',
  declines: daytonaDeclines,
  // Command lines are looked for in the processes of this host, where the service's are not.
  only: liveCases.filter(
    (id) =>
      !/^(?:limits\.cpu|exec\.(?:env-not|timeout|signal)|kill\.|interactive\.kill|control\.(?:timeout|signal)|isolation\.)/.test(
        id,
      ),
  ),
  leftovers: async (prefix) => {
    const found = await looking.list(never);
    return found.map(({ name }) => name).filter((name) => name.startsWith(prefix));
  },
});
