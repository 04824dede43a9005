/** How much shorter what is kept is than what was started: taking the fastest groups prefers short answers. */
export interface LengthBias {
  /** Mean trained tokens of members that were kept, and of all that came to an end; null = there were none. */
  readonly keptTokens: number | null;
  readonly endedTokens: number | null;
  readonly keptMs: number | null;
  readonly endedMs: number | null;
  /** Members that were cut off: how long they would have been nobody knows, they are longer than this. */
  readonly cutMembers: number;
  readonly cutMeanMs: number | null;
  /** Mean duration of what was kept over that of everything started, cut ones at what they had; 1 = no bias. null = nothing was kept. */
  readonly durationRatio: number | null;
}
