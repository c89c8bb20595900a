import { SimulatedWorld, type SimulatedServer } from '@zabra/testing'
import { expect, it } from 'vitest'
import { InStepMonitor } from './in-step-monitor.ts'
import { drawPlan } from './plan.ts'

/** Time after which a ready member has what is committed: two ticks of 500 ms on the slowest clock, and packets. */
const LAG_MS = 1262

/** A world of a leader and a follower, which says that it is ready and has applied nothing. */
function play() {
  const world = new SimulatedWorld(1)
  const said: string[] = []
  const server = (id: number, role: string) => {
    const host = world.addHost(`s${id}`)
    host.start()
    return {
      id,
      host,
      server: { role, leader: 1, epoch: 1, ready: true, service: { tree: { lastZxid: 0 } } },
    }
  }
  const [leader, follower] = [server(1, 'leading'), server(2, 'following')]
  const drawn = drawPlan(1, { servers: 3 })
  const plan = { ...drawn, faults: [], network: { ...drawn.network, tailRate: 0 }, observerMasters: false }
  const servers = [leader, follower] as unknown as readonly SimulatedServer[]
  const monitor = new InStepMonitor({ world, plan, servers, report: (what) => void said.push(what) })
  const cut = () => world.network.cut(leader.host, follower.host)
  const heal = () => world.network.heal()
  return { monitor, follower, said, cut, heal, run: (ms: number) => world.run(world.now + ms) }
}

const FIRST = 2 ** 32 + 1

it('a ready follower that lacks what its leader had committed two ticks ago is reported', async () => {
  const { monitor, follower, said, run } = play()
  monitor.committed(FIRST)
  await run(LAG_MS - 50)
  expect(said).toEqual([])
  await run(150)
  expect(said.length).toBeGreaterThan(0)
  expect(said[0]).toContain('s2 said')
  const { length } = said
  follower.server.service.tree.lastZxid = FIRST
  await run(LAG_MS)
  expect(said.length).toBe(length)
})

it('a follower that is not ready, or is paused, is not compared', async () => {
  const { monitor, follower, said, run } = play()
  monitor.committed(FIRST)
  follower.server.ready = false
  await run(2 * LAG_MS)
  follower.server.ready = true
  follower.host.pause()
  await run(2 * LAG_MS)
  expect([said, monitor.samples]).toEqual([[], 0])
})

it('a follower is compared once its leader has reached it for as long as it may take', async () => {
  const { monitor, said, cut, heal, run } = play()
  cut()
  monitor.committed(FIRST)
  await run(2 * LAG_MS)
  heal()
  await run(LAG_MS - 50)
  expect(said).toEqual([])
  await run(150)
  expect(said.length).toBeGreaterThan(0)
})

it('a follower of an earlier leader need not have what a later one has committed', async () => {
  const { monitor, follower, said, run } = play()
  monitor.committed(FIRST)
  follower.server.service.tree.lastZxid = FIRST
  monitor.committed(2 * 2 ** 32 + 1)
  await run(2 * LAG_MS)
  expect(said).toEqual([])
  expect(monitor.samples).toBeGreaterThan(0)
})
