import { z } from 'zod';
import { isStatus } from './api/api-error.ts';
import type { BootParts } from './sandbox-boot.ts';

const usage = z.object({
  regionUsage: z.array(
    z.object({
      regionId: z.string(),
      totalCpuQuota: z.number(),
      currentCpuUsage: z.number(),
      totalMemoryQuota: z.number(),
      currentMemoryUsage: z.number(),
      totalDiskQuota: z.number(),
      currentDiskUsage: z.number(),
    }),
  ),
});

/**
 * What of the organisation's quota is used up in the region that sandboxes go to; nothing where the organisation or the right to look at its usage is not
 * known. Rejects with `ApiError`.
 */
export async function fullQuotas(
  { api, options }: BootParts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { organizationId, target } = options;
  if (organizationId === null) return [];
  try {
    const url = `/organizations/${encodeURIComponent(organizationId)}/usage`;
    const { regionUsage } = usage.parse(await api.json({ method: 'GET', url, signal }));
    return regionUsage
      .filter(
        ({ regionId }) => regionId === target || (target === null && regionUsage.length === 1),
      )
      .flatMap((region) =>
        [
          region.totalCpuQuota > 0 && region.currentCpuUsage >= region.totalCpuQuota && 'cpu',
          region.totalMemoryQuota > 0 &&
            region.currentMemoryUsage >= region.totalMemoryQuota &&
            'memory',
          region.totalDiskQuota > 0 && region.currentDiskUsage >= region.totalDiskQuota && 'disk',
        ].filter((word) => word !== false),
      );
  } catch (error) {
    if (isStatus(error, 401, 403, 404)) return [];
    throw error;
  }
}
