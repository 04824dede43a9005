import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Logger } from '../../../core/logger.ts';
import { FileCapture } from '../../../gateway/capture/file-capture.ts';
import type { ModelGatewayOptions } from '../../../gateway/model-gateway.ts';
import { captureDirOf } from '../data-folder.ts';
import { rulesOf } from '../route-rules.ts';

type Ports = { readonly clock: Clock; readonly logger: Logger };

/** What the configuration says of a gateway, in whichever process it is. */
export function gatewaySettings(
  config: ServeConfig,
  ports: Ports,
): Pick<ModelGatewayOptions, 'rules' | 'maxCallsPerRollout' | 'engineKind' | 'capture'> {
  return {
    rules: rulesOf(config),
    maxCallsPerRollout: config.gateway.maxInFlight,
    engineKind: config.gateway.engineKind,
    capture: captureOf(config, ports),
  };
}

/** null = calls are not captured. */
export function captureOf(config: ServeConfig, ports: Ports): FileCapture | null {
  const { capture, captureBytes: maxBytes } = config.gateway;
  if (!capture) return null;
  return new FileCapture({ ...ports, dir: captureDirOf(config.dataDir), maxBytes });
}
