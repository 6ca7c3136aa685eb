/** The filters that listing and purging share. The answer is in order of instance id, so that pages can follow. */

import type { HubState, InstanceRecord } from './hub-state.ts';

export function queryInstances(state: HubState, query: URLSearchParams): InstanceRecord[] {
  const from = timeOf(query.get('createdTimeFrom'), Number.NEGATIVE_INFINITY);
  const to = timeOf(query.get('createdTimeTo'), Number.POSITIVE_INFINITY);
  const statuses = (query.get('runtimeStatus') ?? '')
    .split(',')
    .map((status) => status.trim().toLowerCase())
    .filter((status) => status !== '');
  const prefix = query.get('instanceIdPrefix') ?? '';
  return [...state.instances.values()]
    .filter(({ row }) => {
      const created = Date.parse(row.createdTime);
      const hasStatus = statuses.length === 0 || statuses.includes(row.runtimeStatus.toLowerCase());
      return created >= from && created <= to && hasStatus && row.instanceId.startsWith(prefix);
    })
    .sort((left, right) => (left.row.instanceId < right.row.instanceId ? -1 : 1));
}

function timeOf(text: string | null, fallback: number): number {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? fallback : time;
}
