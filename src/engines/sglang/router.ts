/** Which workers stand behind a router of SGLang's or Miles' kind. */
import { RolloutError } from '../../core/errors.ts';
import { EngineClient } from '../shared/engine-client.ts';
import { listOf, recordOf, textOf, type JsonRecord } from '../shared/json.ts';

/** Base addresses of the workers, in the router's order, each once. Asks the newer route first. */
export async function discoverWorkers(
  routerUrl: string,
  { apiKey, signal }: { readonly apiKey: string | null; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const client = new EngineClient(
    { kind: 'sglang', baseUrl: routerUrl, apiKey },
    { abortNotice: null },
  );
  try {
    const workers = await ask(client, '/workers', signal);
    const urls = workers === null ? null : (listOf(workers['workers']) ?? listOf(workers['urls']));
    const older = urls ?? listOf((await ask(client, '/list_workers', signal))?.['urls']);
    if (older === null)
      throw client.error('ENGINE_RESPONSE_INVALID', 'the router lists no workers');
    const found = older.map((each) => textOf(each) ?? textOf(recordOf(each)?.['url']));
    return [...new Set(found.filter((url) => url !== null).map(withoutRank))];
  } finally {
    await client.destroy(
      new RolloutError('CANCELLED', 'discovery is over', { phase: 'model-call' }),
    );
  }
}

/** null = the router does not have this route. */
async function ask(
  client: EngineClient,
  path: string,
  signal: AbortSignal,
): Promise<JsonRecord | null> {
  const answer = await client.http.probe({ method: 'GET', path }, signal);
  if (answer.status === 404 || answer.status === 405) return null;
  return recordOf(client.http.accepted(answer));
}

/** Data-parallel workers are listed once per rank, as `url@rank`; all ranks answer at one address. */
function withoutRank(url: string): string {
  return url.replace(/@\d+$/, '');
}
