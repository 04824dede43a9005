/** A response's output as input of the request that goes on from it: output items are legal input items, of every answer that was not cut short. */
export function inputOf(response: Readonly<Record<string, unknown>>): readonly unknown[] {
  const { output } = response;
  return Array.isArray(output) ? (output as readonly unknown[]) : [];
}
