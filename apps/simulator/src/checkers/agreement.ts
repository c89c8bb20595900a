import { formatZxid } from '../history/records.ts'
import type { Checker } from './checker.ts'

export const agreement: Checker = {
  name: 'agreement',
  proves:
    'A committed transaction is identical in the log of every server that has it, the history has no gaps, and no transaction that a leader committed is lost.',
  check({ logs, committed, quorum }) {
    const wrong = logs.flatMap(({ problems }) => problems)
    for (const { server, entries } of logs) {
      for (const [zxid, logged] of entries) {
        const other = logs.find((log) => log.server !== server && log.entries.has(zxid))
        if (other !== undefined && other.entries.get(zxid) !== logged && committed.byZxid.has(zxid))
          wrong.push(`${server} and ${other.server} have different transactions ${formatZxid(zxid)}`)
      }
    }
    let last = 0
    for (const { zxid } of committed.entries) {
      const isNext = zxid === last + 1 || (zxid > last && zxid % 2 ** 32 === 1)
      if (!isNext) wrong.push(`The history goes from ${formatZxid(last)} to ${formatZxid(zxid)}`)
      last = zxid
    }
    for (const zxid of quorum?.committed ?? [])
      if (!committed.byZxid.has(zxid))
        wrong.push(`A leader committed ${formatZxid(zxid)}, which the history that survives does not have`)
    return wrong
  },
}
