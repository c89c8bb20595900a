import type { ServerStats } from '../../connections/stats.ts'

/** The operations that Apache ZooKeeper 3.10 counts; its `op_count_total` is their sum. */
const COUNTED = `
  add_watch check check_watches close_session create create_session delete exists get_acl
  get_all_children_number get_children get_data get_ephemerals multi multi_read ping reconfig
  remove_watches set_acl set_data set_watches sync who_am_i`
  .trim()
  .split(/\s+/)

/** Returns the counters of operations that Apache ZooKeeper has from release 3.10 on: here of replies, also of errors, and of connect requests. */
export function operationCounts(stats: ServerStats): (readonly [name: string, value: number])[] {
  const counts = new Map(COUNTED.map((operation) => [operation, 0]))
  counts.set('create_session', stats.total('sessionsRequested'))
  for (const { op, count } of stats.requests.entries()) {
    const operation = operationOf(op)
    const before = counts.get(operation)
    if (before !== undefined) counts.set(operation, before + count)
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return [['total', total] as const, ...counts].map(([name, count]) => [`op_count_${name}`, count])
}

/** Returns the name under which an operation is counted: forms of the same operation have one. */
const operationOf = (op: string): string =>
  op.replace(/(?:2|Container|TTL)$/, '').replaceAll(/[A-Z]+/g, (letters) => `_${letters.toLowerCase()}`)
