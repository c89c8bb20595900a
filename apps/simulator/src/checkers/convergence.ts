import { OpCode } from '@zabra/protocol'
import { formatZxid, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'

export const convergence: Checker = {
  name: 'convergence',
  proves:
    'After healing every server holds the tree of the whole history, and again after a power cut of all machines.',
  check({ history, committed, readers }) {
    const wrong: string[] = []
    const { model } = committed
    // A leader whose wall clock has jumped back keeps expired TTL nodes; the next leader deletes them at any time.
    const isBySelf = (zxid: number): boolean =>
      committed.byZxid.get(zxid)?.logged.txn.type === OpCode.deleteContainer
    const expected = model.existingPaths().filter((path) => path.startsWith('/w'))
    for (const [client, server] of readers) {
      const seen = history.operations.filter(
        (one) => one.client === client && one.outcome === 'answered' && one.request.op === 'get',
      )
      if (seen.length === 0) {
        wrong.push(`${server} could not be read by ${client}`)
        continue
      }
      const found = new Set(seen.filter(({ result }) => result.err === 0).map(pathOf))
      for (const path of expected)
        if (!found.has(path)) wrong.push(`${server} lacks ${path} when ${client} reads it`)
      for (const path of found)
        if (
          model.stateAt(path, Infinity) === undefined &&
          !isBySelf(model.lastChange(path, Infinity)?.zxid ?? 0)
        )
          wrong.push(`${server} shows ${path} to ${client}, which is deleted`)
      const old = seen.find(({ zxid, request }) => {
        const step = 'path' in request ? model.lastChange(request.path, Infinity) : undefined
        return step !== undefined && step.zxid > zxid && !isBySelf(step.zxid)
      })
      if (old !== undefined)
        wrong.push(
          `${server} shows ${client} a state of ${formatZxid(old.zxid)}, which is not the last of ${pathOf(old)}`,
        )
    }
    return wrong
  },
}

const pathOf = ({ request }: Operation): string => ('path' in request ? request.path : '')
