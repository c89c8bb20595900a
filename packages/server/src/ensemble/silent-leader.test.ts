import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const LEADER_PORT = 2003
const ELSEWHERE = 9

/** Three members, of which 1 finds the leader's port taken by somebody who hangs up, for some time from the first attempt on. */
async function start(
  forMs: number,
): Promise<{ ensemble: Ensemble; attempts: () => number; looks: () => number }> {
  const ensemble = new Ensemble(3)
  let first: number | undefined
  let attempts = 0
  await ensemble.network.listen({ port: ELSEWHERE }, (wire) => {
    wire.setHandler({ data: () => wire.destroy(), drain() {}, closed() {} })
  })
  ensemble.detour = (id, port) => {
    if (id !== 1 || port !== LEADER_PORT) return port
    attempts++
    first ??= ensemble.clock.monotonic()
    return ensemble.clock.monotonic() - first < forMs ? ELSEWHERE : port
  }
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.until('the follower', () => ensemble.running.every(({ serving }) => serving))
  const looks = (): number =>
    ensemble.lines.filter((line) => / 1 info Looking for a leader/.test(line)).length
  return { ensemble, attempts: () => attempts, looks }
}

it('asks a leader of this moment again that hung up before it said anything, without another election', async () => {
  const { ensemble, attempts, looks } = await start(300)
  expect(attempts()).toBeGreaterThan(2)
  expect(looks()).toBe(1)
  expect([ensemble.server(1).role, ensemble.server(1).leader]).toEqual(['following', 3])
  expect(ensemble.lines.join('\n')).toContain('before the leader sent anything')
})

it('looks for a leader again when it was not heard for half a second', async () => {
  const { ensemble, looks } = await start(1200)
  expect(looks()).toBeGreaterThan(1)
  expect([ensemble.server(1).role, ensemble.server(1).leader]).toEqual(['following', 3])
})
