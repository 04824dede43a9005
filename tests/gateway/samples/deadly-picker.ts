/** Pickers of branches that no operator should have. */
export function kill(): never {
  process.exit(1);
}

export function nothing(): readonly [] {
  return [];
}

export function stay(): never {
  for (;;);
}
