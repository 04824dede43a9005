import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { SecretSources } from '../../config/serve/read-secrets.ts';
import { ConfiguredKeyRing } from '../../server/key-ring.ts';
import { assertMayListen, compileAllowFrom } from '../../server/may-listen.ts';
import type { AllowFrom } from '../../server/ports.ts';
import type { SecretMask } from '../../telemetry/secret-mask.ts';
import { callerKeys, keySources } from './key-sources.ts';

export interface Callers {
  readonly keys: ConfiguredKeyRing;
  readonly allowFrom: AllowFrom;
  /** No line of a log holds the keys that callers have now. */
  hideIn(mask: SecretMask): Promise<void>;
}

/** Who may call the control listener. CONFIG_INVALID; LISTEN_REFUSED for an address that others reach while nobody is asked for a key. */
export async function openCallers(config: ServeConfig, sources: SecretSources): Promise<Callers> {
  const { host, allowFrom: entries } = config.listen;
  const keys = await ConfiguredKeyRing.open(await keySources(config, sources));
  const allowFrom = compileAllowFrom(entries);
  assertMayListen(host, keys, allowFrom);
  return {
    ...{ keys, allowFrom },
    async hideIn(mask) {
      mask.add(await callerKeys(config, sources));
    },
  };
}
