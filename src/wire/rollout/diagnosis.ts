/** The answer to "why is this rollout not moving?": what it waits for, who has to act, and how that is known. */

/** What can hold a rollout up. Closed: doctor, API and documents know every one. */
export const hangKinds = [
  'engine-silent',
  'engine-slow',
  'upstream-refusing',
  'sandbox-create-stuck',
  'build-stuck',
  'verifier-hung',
  'agent-sleeping',
  'agent-waiting-for-input',
  'admission-starved',
  'paused',
  'callback-blocked',
  'disk-full',
] as const;

export type HangKind = (typeof hangKinds)[number];

/** `moving`: nothing holds it up. `ended`: there is nothing left to wait for. `unclear`: it has been still for long, and nothing that was looked at says why. */
export type DiagnosisKind = HangKind | 'moving' | 'ended' | 'unclear';

export interface Diagnosis {
  /** null = of the server as a whole. */
  readonly rolloutId: string | null;
  readonly kind: DiagnosisKind;
  /** Who has to act, as in `WaitingOn.owner`; null = nobody. */
  readonly owner: string | null;
  /** One sentence for a person, as all texts here; never a secret. null = for nothing. */
  readonly waitingOn: string | null;
  readonly since: Date | null;
  /** When the wait ends by itself; null = no limit of its own. */
  readonly deadline: Date | null;
  /** What was seen, most telling first. */
  readonly evidence: readonly string[];
  /** What to do; null = nothing. */
  readonly remedy: string | null;
}

export function isHang(kind: DiagnosisKind): kind is HangKind {
  return (hangKinds as readonly string[]).includes(kind);
}
