import { epochOf } from '@zabra/protocol'
import type { LogReport } from '@zabra/server/files'
import { hex } from '../text/hex.ts'

const zxid = (value: number | undefined): string => (value === undefined ? '-' : hex(value))

/** Formats the report of a log on one or two lines. */
export function reportLines({ file, state, transactions, first, last, problem }: LogReport): string[] {
  const range =
    transactions === 0 ? 'no transaction' : `${transactions} transactions, ${zxid(first)} to ${zxid(last)}`
  const line = `${file}: ${state}, ${range}`
  if (problem === undefined) return [line]
  return [line, `  first bad byte ${problem.offset}: ${problem.what}. ${problem.action.replace(/\.$/, '')}.`]
}

/** Returns a report for JSON output. */
export const reportJson = ({ first, last, ...report }: LogReport): Record<string, unknown> => ({
  ...report,
  first: zxid(first),
  last: zxid(last),
})

/** Describes the transactions missing between two logs; returns undefined when there is no gap. */
export function describeGap(before: LogReport, after: LogReport): string | undefined {
  const { last } = before
  const { first } = after
  if (last === undefined || first === undefined || first <= last + 1) return undefined
  if (epochOf(first) !== epochOf(last)) return undefined
  return `Transactions ${zxid(last + 1)} to ${zxid(first - 1)} are missing between ${before.file} and ${after.file}. Restore the log with them; a server needs them unless it has a later snapshot.`
}
