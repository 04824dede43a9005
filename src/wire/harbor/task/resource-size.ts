const units: Readonly<Record<string, number>> = { G: 1024, M: 1, K: 1 / 1024 };

/** Reads the older spelling of a size, `4G`, `1.5g`, `512M`, `2048K`, as whole MiB; null when it is none. */
export function readResourceSize(text: string): number | null {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))\s*([gmk])$/i.exec(text.trim());
  const unit = units[match?.[2]?.toUpperCase() ?? ''];
  return unit === undefined ? null : Math.trunc(Number(match?.[1]) * unit);
}
