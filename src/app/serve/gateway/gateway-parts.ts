import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Logger } from '../../../core/logger.ts';
import type { CallCapture } from '../../../gateway/capture/call-capture.ts';
import { FileCapture } from '../../../gateway/capture/file-capture.ts';
import { SamplesCapture } from '../../../gateway/capture/samples-capture.ts';
import type { ModelGatewayOptions } from '../../../gateway/model-gateway.ts';
import { captureDirOf } from '../data-folder.ts';
import { rulesOf } from '../route-rules.ts';

type Ports = { readonly clock: Clock; readonly logger: Logger };

/** What the configuration says of a gateway, in whichever process it is. */
export function gatewaySettings(
  config: ServeConfig,
  ports: Ports,
): Pick<ModelGatewayOptions, 'rules' | 'maxCallsPerRollout' | 'engineKind'> & {
  readonly capture: CallCapture | null;
} {
  return {
    rules: rulesOf(config),
    maxCallsPerRollout: config.gateway.maxInFlight,
    engineKind: config.gateway.engineKind,
    capture: captureOf(config, ports),
  };
}

/** Samples are made of captured calls: where no others are kept, those are. */
export function captureOf(config: ServeConfig, ports: Ports): CallCapture {
  const { capture, captureBytes: maxBytes } = config.gateway;
  const kept = new FileCapture({ ...ports, dir: captureDirOf(config.dataDir), maxBytes });
  return capture ? kept : new SamplesCapture(kept);
}
