import type { Prng } from '@zabra/testing'
import type { MultiPart, Request } from '../history/records.ts'

/** The node whose children make a tree large. */
const LARGE = '/large'
const NODES = 10_000
const NODES_PER_MULTI = 500

/** Returns the requests that create the nodes, in order. */
export function largeTreeRequests(): Request[] {
  const created = (path: string): MultiPart => ({ op: 'create', path, data: '', mode: 'persistent' })
  const multis = Array.from({ length: NODES / NODES_PER_MULTI }, (_, multi): Request => {
    const parts = Array.from({ length: NODES_PER_MULTI }, (_, at) =>
      created(`${LARGE}/${multi * NODES_PER_MULTI + at}`),
    )
    return { op: 'multi', parts }
  })
  return [created(LARGE), ...multis]
}

/** Returns a request that lists, counts or changes the nodes. Most changes concern the last ones, which a listing reaches last. */
export function drawLargeTreeRequest(prng: Prng, data: string): Request {
  const path = `${LARGE}/${NODES - 1 - prng.below(prng.pick([40, 40, NODES]))}`
  switch (prng.pickWeighted({ children: 1, count: 1, create: 2, set: 1, delete: 4 })) {
    case 'children':
      return { op: 'children', path: LARGE, watch: false }
    case 'count':
      return { op: 'count', path: LARGE }
    case 'create':
      return { op: 'create', path, data, mode: 'persistent' }
    case 'set':
      return { op: 'set', path, data, version: -1 }
    case 'delete':
      return { op: 'delete', path, version: -1 }
  }
}
