import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const LEADER_PORT = 2003
const OTHER_PORT = 9
/** Shorter than the 10 ticks for which a leader waits for a quorum. */
const SERVES_WITHIN_MS = 5000

interface Plan {
  readonly size?: number
  /** The members that start. */
  readonly ids?: readonly number[]
  /** Those that do not reach the leader. */
  readonly without?: readonly number[]
}

/**
 * Starts members. For some time after the first attempt, some of them reach a server that closes connections, in place of the leader,
 * which is member 3.
 */
async function start(forMs: number, { size = 3, ids = [1, 2, 3], without = [1] }: Plan = {}) {
  const ensemble = new Ensemble(size)
  let first: number | undefined
  let attempts = 0
  await ensemble.network.listen({ port: OTHER_PORT }, (connection) => {
    connection.setHandler({ data: () => connection.destroy(), drain() {}, closed() {} })
  })
  ensemble.detour = (id, port) => {
    if (!without.includes(id) || port !== LEADER_PORT) return port
    attempts++
    first ??= ensemble.clock.monotonic()
    return ensemble.clock.monotonic() - first < forMs ? OTHER_PORT : port
  }
  for (const id of ids) await ensemble.member(id).start()
  await ensemble.allServe(SERVES_WITHIN_MS)
  const electionStarts = (): number =>
    ensemble.lines.filter((line) => / 1 info Looking for a leader/.test(line)).length
  return { ensemble, attempts: () => attempts, electionStarts }
}

it('a learner reconnects without an election to a fresh leader that closed the connection before it sent anything', async () => {
  const { ensemble, attempts, electionStarts } = await start(300)
  expect(attempts()).toBeGreaterThan(2)
  expect(electionStarts()).toBe(1)
  expect([ensemble.server(1).role, ensemble.server(1).leader]).toEqual(['following', 3])
  expect(ensemble.lines.join('\n')).toContain('before the leader sent anything')
})

it('a learner starts an election when the leader has sent nothing for half a second', async () => {
  const { ensemble, electionStarts } = await start(1200)
  expect(electionStarts()).toBeGreaterThan(1)
  expect([ensemble.server(1).role, ensemble.server(1).leader]).toEqual(['following', 3])
})

it('a learner that its leader needs joins it after half a second in vain, while the third member is down', async () => {
  const { ensemble, electionStarts } = await start(1200, { ids: [1, 3] })
  expect(electionStarts()).toBeGreaterThan(1)
  expect([ensemble.server(1).role, ensemble.server(1).leader]).toEqual(['following', 3])
})

it('two learners of four members join their leader after half a second in vain, while the fourth member is down', async () => {
  const { ensemble, electionStarts } = await start(1200, { size: 4, ids: [1, 2, 3], without: [1, 2] })
  expect(electionStarts()).toBeGreaterThan(1)
  for (const id of [1, 2])
    expect([ensemble.server(id).role, ensemble.server(id).leader]).toEqual(['following', 3])
})
