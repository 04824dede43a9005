import { samplesQuery } from '../../wire/api/samples.ts';
import { operations } from '../../wire/api/operations.ts';
import { samplesFile } from '../../wire/rollout/rollout-samples.ts';
import { Refusal, refuse } from '../refusal.ts';
import { readQuery } from '../request-body.ts';
import { addRoute, type Routing } from '../route.ts';
import { sendFile } from './files.ts';
import { viewOf } from './rollouts.ts';

/** Samples are handed out where the end of the rollout says that there are some: a file that an earlier attempt left is none. */
export function addSamplesRoute(routing: Routing): void {
  const { files, milesPayload } = routing.parts;
  addRoute(routing, operations.rolloutSamples, async (call) => {
    const { format, layers = null } = readQuery(samplesQuery, call.request);
    const { rollout } = await viewOf(routing, call);
    const { endedAt, outcome } = rollout;
    const refusal = (why: string): Refusal => refuse('SAMPLES_UNAVAILABLE', why);
    if (endedAt === null) throw refusal('the rollout has not ended');
    const { samples } = outcome ?? {};
    if (samples === undefined) throw refusal('nobody wants samples of this rollout');
    if (samples.notTrainable !== null) throw refusal(samples.notTrainable.message);
    const kept = await files.list(rollout.id);
    const file = kept.find(({ path }) => path === samplesFile);
    const place = file === undefined ? null : await files.locate(rollout.id, samplesFile);
    // Retention takes the archive before the rollout.
    if (file === undefined || place === null) throw new Refusal(404, 'Not Found');
    if (format === 'ndjson')
      return await sendFile(call, { file, place, type: 'application/x-ndjson' });
    call.reply.type('application/octet-stream').header('cache-control', 'private, no-cache');
    return Buffer.from(await milesPayload(place, layers));
  });
}
