import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const LEADER_PORT = 2003
const OTHER_PORT = 9

/** Starts three members. For some time after its first attempt, member 1 reaches a server that closes connections, in place of the leader. */
async function start(forMs: number) {
  const ensemble = new Ensemble(3)
  let first: number | undefined
  let attempts = 0
  await ensemble.network.listen({ port: OTHER_PORT }, (connection) => {
    connection.setHandler({ data: () => connection.destroy(), drain() {}, closed() {} })
  })
  ensemble.detour = (id, port) => {
    if (id !== 1 || port !== LEADER_PORT) return port
    attempts++
    first ??= ensemble.clock.monotonic()
    return ensemble.clock.monotonic() - first < forMs ? OTHER_PORT : port
  }
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
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
