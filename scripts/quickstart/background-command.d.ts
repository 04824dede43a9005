export function startInBackground(
  argv: readonly string[],
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }>;
