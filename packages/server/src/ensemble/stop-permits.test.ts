import { ManualClock, SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import { TestServer } from '../testing/test-server.ts'
import type { StopPermitRequest } from '../core/zab/index.ts'
import type { Member } from './member.ts'
import { StopPermit } from './stop-permits.ts'
import { Ensemble } from './testing/ensemble.ts'

/** Simulated histories; `ZABRA_PERMIT_SEEDS` asks for more of them. */
const seeds = Array.from({ length: Number(process.env['ZABRA_PERMIT_SEEDS'] ?? 3) }, (_, index) => index + 1)

type Options = NonNullable<ConstructorParameters<typeof Ensemble>[1]>

const start = (size: number, settings: Options = {}): Promise<Ensemble> =>
  Ensemble.start(size, { adminRoleOperate: ['ip:127.0.0.1'], ...settings })

interface Reply {
  readonly status: number
  readonly text: string
}

/** Asks for a permit at a member. */
async function ask(ensemble: Ensemble, id: number, body = ''): Promise<Reply> {
  let reply: Reply | undefined
  const asked = ensemble.member(id).http.request('/api/v1/stop-permit', { method: 'POST', body })
  void asked.then((answer) => (reply = answer))
  await ensemble.until('an answer', () => reply !== undefined)
  return reply!
}

const statusOf = async (...asked: Parameters<typeof ask>): Promise<number> => (await ask(...asked)).status

const others = (ensemble: Ensemble, ...ids: number[]): number[] =>
  [...ensemble.members.keys()].filter((id) => !ids.includes(id))

describe('a permit to stop', () => {
  it('is given to one member of three at a time, and names who has it', async () => {
    const ensemble = await start(3)
    const [first, second] = others(ensemble, ensemble.leader!)
    expect(await ask(ensemble, first!)).toEqual(
      expect.objectContaining({ status: 200, text: `{"id":${first},"seconds":120}\n` }),
    )
    expect(await ask(ensemble, second!)).toMatchObject({
      status: 409,
      text: expect.stringContaining(`members with a permit to stop: ${first}`),
    })
    expect(await statusOf(ensemble, ensemble.leader!)).toBe(409)
    expect(await statusOf(ensemble, first!), 'renewed').toBe(200)
  })

  it('is given to the next member once the holder runs again and follows', async () => {
    const ensemble = await start(3)
    const [first, second] = others(ensemble, ensemble.leader!)
    await ask(ensemble, first!)
    await ensemble.member(first!).stop()
    expect(await ask(ensemble, second!)).toMatchObject({
      status: 409,
      text: expect.stringContaining(`down or behind: ${first}`),
    })
    await ensemble.startServing(first!)
    await ensemble.advance(1000)
    expect(await statusOf(ensemble, second!)).toBe(200)
  })

  it('is given to two members of five', async () => {
    const ensemble = await start(5)
    const leader = ensemble.leader!
    const followers = others(ensemble, leader)
    const statuses = [
      await statusOf(ensemble, leader),
      ...(await Promise.all(followers.map((id) => statusOf(ensemble, id)))),
    ]
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
    expect(statuses.filter((status) => status === 409)).toHaveLength(3)
  })

  it('stays with its holder when another member leads', async () => {
    const ensemble = await start(5)
    const leader = ensemble.leader!
    const [first] = others(ensemble, leader)
    expect(await statusOf(ensemble, first!)).toBe(200)
    expect(await statusOf(ensemble, leader)).toBe(200)
    ensemble.server(leader).yieldLeadership()
    await ensemble.until('another leader', () => ![undefined, leader].includes(ensemble.leader))
    await ensemble.allServe()
    for (const id of others(ensemble, first!, leader)) expect(await statusOf(ensemble, id)).toBe(409)
    expect(await statusOf(ensemble, first!), 'renewed').toBe(200)
    expect(await statusOf(ensemble, leader), 'renewed').toBe(200)
  })

  it('ends with its time, and when it is given back', async () => {
    const ensemble = await start(3)
    const [first, second] = others(ensemble, ensemble.leader!)
    await ask(ensemble, first!, '{"seconds": 10}')
    await ensemble.advance(9000)
    expect(await statusOf(ensemble, second!)).toBe(409)
    await ensemble.advance(1500)
    expect(await statusOf(ensemble, second!)).toBe(200)
    const { text } = await ensemble.member(second!).http.request('/api/v1/self')
    expect(JSON.parse(text)).toMatchObject({ stopPermitMs: expect.any(Number) })
    await ensemble.member(second!).http.request('/api/v1/stop-permit', { method: 'DELETE' })
    await ensemble.advance(100)
    expect(await statusOf(ensemble, first!)).toBe(200)
  })

  it('is not held by a member that has given it back before the leader has answered', async () => {
    const sent: StopPermitRequest[] = []
    const permit = new StopPermit(new ManualClock(), 1000)
    permit.connect({ send: (request) => void sent.push(request) })
    const asked = permit.request(60_000)
    permit.release()
    permit.answered({ number: sent[0]!.number, isGranted: true, missing: [], stopping: [] })
    expect(await asked).toEqual({ unavailable: 'the permit was given back before the leader answered' })
    expect(permit.isHeld).toBe(false)
    expect(sent.at(-1)).toEqual({ number: 0, forMs: 0 })
  })

  it('is refused while the leader has not heard the others for two ticks', async () => {
    const ensemble = await start(3)
    const leader = ensemble.leader!
    const [first, second] = others(ensemble, leader)
    ensemble.member(second!).silence()
    await ensemble.advance(3500)
    expect(await statusOf(ensemble, first!)).toBe(409)
  })

  it('needs a leader, unless the quorum does not need the server', async () => {
    const ensemble = await start(4, { observers: [4] })
    const leader = ensemble.leader!
    const [first, second] = others(ensemble, leader, 4)
    expect(await statusOf(ensemble, 4)).toBe(200)
    for (const id of [leader, second!]) await ensemble.member(id).crash()
    await ensemble.until('no leader', () => ensemble.server(first!).role === 'looking')
    expect(await ask(ensemble, first!)).toMatchObject({ status: 503 })
    expect(await statusOf(ensemble, 4)).toBe(200)
    const alone = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'] })
    expect((await alone.http.request('/api/v1/stop-permit', { method: 'POST' })).status).toBe(200)
    await alone.stop()
  })

  it('is given to one member of an ensemble of two, which has no quorum without it', async () => {
    const ensemble = await start(2)
    expect(await statusOf(ensemble, 1)).toBe(200)
    expect(await statusOf(ensemble, 2)).toBe(409)
    await ensemble.member(1).http.request('/api/v1/stop-permit', { method: 'DELETE' })
    await ensemble.advance(100)
    expect(await statusOf(ensemble, 2)).toBe(200)
  })

  it('is not in the way of one for a voter when a server without a vote holds it', async () => {
    const ensemble = await start(2, { reconfigEnabled: true })
    const lines = [1, 2, 3].map((id) => `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}`)
    await ensemble.join(3, parseConfiguration(lines.join('\n')))
    await ensemble.until('the joiner to follow', () => ensemble.server(3).serving)
    expect(await statusOf(ensemble, 3)).toBe(200)
    expect(await statusOf(ensemble, 1)).toBe(200)
    // Nor is a voter in its way.
    await ensemble.advance(1000)
    expect(await statusOf(ensemble, 3)).toBe(200)
    expect(await statusOf(ensemble, 2)).toBe(409)
  })

  it('refuses times out of range', async () => {
    const ensemble = await start(3)
    for (const body of ['{"seconds": 0}', '{"seconds": 3601}', '{"seconds": "1"}', '['])
      expect(await statusOf(ensemble, 1, body)).toBe(400)
  })
})

describe('a member that stops', () => {
  it('waits for a permit with stop.permitMs, so that all can be stopped at once', async () => {
    const ensemble = await start(3, { stopPermitMs: 60_000 })
    const stopping = [...ensemble.members.keys()].map(async (id) => {
      const { server } = ensemble.member(id)
      await server!.close()
      await ensemble.member(id).crash()
      await ensemble.member(id).start()
    })
    let isDone = false
    void Promise.all(stopping).then(() => (isDone = true))
    await ensemble.until('the restart of all members', () => {
      expect(ensemble.running.length).toBeGreaterThanOrEqual(2)
      return isDone
    })
    await ensemble.allServe()
  })

  it('stops without a permit when the time is over', async () => {
    const ensemble = await start(3, { stopPermitMs: 5000 })
    const [first, second] = others(ensemble, ensemble.leader!)
    await ensemble.member(first!).crash()
    await ensemble.member(second!).stop()
    expect(ensemble.lines.join('\n')).toContain('The server stops without a permit of the leader')
  })
})

/** Members that hold a permit, also those that have stopped with one and have not started again. */
class StopPermitList {
  readonly #ensemble: Ensemble
  readonly #stopped = new Set<number>()

  constructor(ensemble: Ensemble) {
    this.#ensemble = ensemble
  }

  get ids(): number[] {
    const holds = (id: number): boolean => {
      const { server } = this.#ensemble.member(id)
      return server !== undefined && (server as Member).stopPermitMs > 0
    }
    return [...this.#ensemble.members.keys()].filter((id) => this.#stopped.has(id) || holds(id))
  }

  async stop(id: number): Promise<void> {
    this.#stopped.add(id)
    await this.#ensemble.member(id).stop()
  }

  async start(id: number): Promise<void> {
    await this.#ensemble.member(id).start()
    this.#stopped.delete(id)
  }
}

describe('members that hold permits', () => {
  // A minority at any time, through crashes, silent connections, changes of the leader, stops and restarts.
  it.each(seeds)('are so few that the others are a quorum (seed %i)', async (seed) => {
    const random = new SeededRandom(seed)
    const ensemble = await start(5)
    const ids = [...ensemble.members.keys()]
    const holders = new StopPermitList(ensemble)
    for (let step = 0; step < 40; step++) {
      const id = ids[random.below(ids.length)]!
      const other = ids[random.below(ids.length)]!
      const { server } = ensemble.member(id)
      const fault = random.below(20)
      if (server === undefined) await holders.start(id)
      else if (holders.ids.includes(id)) await holders.stop(id)
      else if (fault === 0) await ensemble.member(id).crash()
      else if (fault === 1) ensemble.member(id).silence()
      else if (fault < 4) server.yieldLeadership()
      else
        for (const each of [id, other])
          if (ensemble.member(each).server !== undefined)
            void ensemble.member(each).http.request('/api/v1/stop-permit', {
              method: 'POST',
              body: `{"seconds": ${1 + random.below(900)}}`,
            })
      for (let left = random.below(30); left >= 0; left--) {
        await ensemble.advance(50)
        expect(holders.ids.length, `step ${step}: ${holders.ids.join()}`).toBeLessThanOrEqual(2)
      }
    }
  })
})
