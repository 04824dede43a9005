/** The samples of a rollout, from the lines that its server keeps (`wire/samples/sample-lines.ts`). */
import { sampleLineSchema, type SampleLine } from '../../wire/samples/sample-lines.ts';
import type { TrainingSample } from '../training-sample.ts';

export interface ReadSamples {
  readonly samples: readonly TrainingSample[];
  readonly wasAborted: boolean;
}

/** Head and end of the lines are not looked at: whoever audits reads the file itself. Throws for a line that is none. */
export function samplesOfLines(text: string): ReadSamples {
  const lines = text.split('\n').filter((line) => line.startsWith('{"sample":'));
  const read = lines.map((line) => sampleLineSchema.parse(JSON.parse(line)));
  return {
    samples: read.map(trainingSample),
    wasAborted: read.some(({ status }) => status === 'aborted'),
  };
}

function trainingSample(line: SampleLine): TrainingSample {
  return {
    ...{ tokens: line.tokens, promptLength: line.prompt_length, lossMask: line.loss_mask },
    ...{ logprobs: line.log_probs, weight: line.weight },
    isTruncated: line.status === 'truncated' || line.is_cut,
    spans: line.calls
      .filter(({ output, end }) => end > output)
      .map(({ output, end, trained, weight_version: weightVersion }) => ({
        ...{ begin: output, end, isTrained: trained, weightVersion },
      })),
  };
}
