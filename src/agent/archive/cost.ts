/**
 * What a run roughly costs on Azure: the operations it made once, and what it added for each month. A small price list
 * with its date, and every assumption printed with the figure.
 */

import type { UploadTier } from './archive-context.ts';

/** EUR without tax, West Europe, LRS, from the Azure Retail Prices API of 2026-06-27. Per 10,000 operations, per GiB-month. */
const PRICES = {
  date: '2026-06-27',
  region: 'West Europe',
  currency: 'EUR',
  blobWrite: { hot: 0.046446, cool: 0.08601, cold: 0.154819 },
  blobRead: { hot: 0.003698, cool: 0.008601, cold: 0.08601 },
  storage: { hot: 0.016858, cool: 0.008601, cold: 0.00387 },
  /** List prices in USD, taken as if in EUR: they are too small to matter. */
  table: 0.00036,
  queue: 0.004,
} as const;

const OPERATIONS_UNIT = 10_000;
const GIB = 2 ** 30;

export interface EstimatedCost {
  readonly currency: string;
  /** Once, for the operations of this run. */
  readonly amount: number;
  /** For each month that the bytes added by this run stay. */
  readonly monthlyAmount: number;
  readonly assumptions: string;
}

/** `requests`: by class (`blob-write`, `blob-list`, `blob-read`, `blob-head`, `table-read`, `table-write`, `queue`, …). */
export function estimateCost(
  requests: Readonly<Record<string, number>>,
  bytesUploaded: number,
  tier: UploadTier,
): EstimatedCost {
  const amount = Object.entries(requests).reduce(
    (sum, [requestClass, count]) => sum + (count / OPERATIONS_UNIT) * operationPrice(requestClass, tier),
    0,
  );
  return {
    currency: PRICES.currency,
    amount: rounded(amount),
    monthlyAmount: rounded((bytesUploaded / GIB) * PRICES.storage[tier]),
    assumptions:
      `${PRICES.region}, LRS, tier ${tier} for every blob, list prices of ${PRICES.date} without tax; ` +
      'storage operations only, no compute, no data transfer',
  };
}

function operationPrice(requestClass: string, tier: UploadTier): number {
  switch (requestClass) {
    case 'blob-write':
    case 'blob-list':
      return PRICES.blobWrite[tier];
    case 'blob-read':
    case 'blob-head':
      return PRICES.blobRead[tier];
    case 'queue':
      return PRICES.queue;
    default:
      return requestClass.startsWith('table-') ? PRICES.table : 0;
  }
}

/** Adds counts class by class. */
export function addRequests(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const sum: Record<string, number> = { ...a };
  for (const [requestClass, count] of Object.entries(b)) {
    sum[requestClass] = (sum[requestClass] ?? 0) + count;
  }
  return sum;
}

function rounded(amount: number): number {
  return Math.round(amount * 1e6) / 1e6;
}
