import { expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { faultNames, faults } from './ensemble/faults.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { describeWith, isLong } from './harness/requirements.ts'
import { countFromEnv, Prng, seedFromEnv } from './harness/prng.ts'
import type { Kind } from './harness/servers.ts'

const rounds = countFromEnv('ZABRA_FAULT_ROUNDS', isLong ? 5 : 3)
const seed = seedFromEnv()
/** Writes to acknowledge between two faults. */
const WRITES = 20
const kinds = (process.env['ZABRA_FAULT_KINDS']?.split(',') ?? ['zabra', 'zabra', 'zabra']) as Kind[]
const replay = `replay with: ZABRA_SEED=${seed} ZABRA_FAULT_ROUNDS=${rounds} npx vitest run src/ensemble-faults.test.ts (the machine still decides the interleaving)`

let ensemble: Ensemble

const peers = kinds.includes('apache-3.8') ? (['apache'] as const) : []

/** Injects faults in turn while clients write, and checks the history. `kazoo` is the number of kazoo processes among the clients. */
async function expectSurvival(kazoo: number): Promise<void> {
  ensemble = await Ensemble.start({ kinds, proxied: true, config: { snapCount: 500, snapTreeShare: 0 } })
  const prng = new Prng(seed)
  const injected: string[] = []
  const options = { seed, sessionTimeout: 16_000, kazoo }
  const { violations, ...figures } = await runUnderLoad(ensemble, options, async (waitForWrites) => {
    for (let round = 0; round < rounds; round++) {
      const name = faultNames[(round + prng.int(faultNames.length)) % faultNames.length]!
      injected.push(`${Math.round(performance.now())} ms: ${name}`)
      await faults[name](ensemble, prng)
      // All members run, there is one leader and clients write again before the next fault.
      await ensemble.leader()
      await waitForWrites(WRITES)
    }
  })
  console.log(`faults: seed ${seed}, ${rounds} rounds, ${JSON.stringify(figures)}; ${injected.join('; ')}`)
  const outputs = ensemble.ids.map((id) => `--- ${id}\n${ensemble.member(id).output.slice(-3000)}`)
  expect(violations, [...violations, injected.join('; '), replay, ...outputs].join('\n')).toEqual([])
}

const timeout = 60_000 + rounds * 30_000

describeWith(peers, 'an ensemble under faults', () => {
  it(`keeps acknowledged writes in one order and has equal trees after ${rounds} faults`, { timeout }, () =>
    expectSurvival(0),
  )
})

describeWith(peers, 'an ensemble whose leader is stopped for 12 s', () => {
  it(
    'elects another one, keeps acknowledged writes and sessions, and is led by that one when the first runs again',
    { timeout: 120_000 },
    async () => {
      const [ensemble, pauseMs] = [await Ensemble.start({ kinds }), 12_000]
      const { violations, ...figures } = await runUnderLoad(
        ensemble,
        { seed, sessionTimeout: 30_000 },
        async (waitForWrites) => {
          await waitForWrites(WRITES)
          const first = await ensemble.leader()
          ensemble.member(first).signal('SIGSTOP')
          const until = performance.now() + pauseMs
          while (performance.now() < until) await waitForWrites(WRITES)
          ensemble.member(first).signal('SIGCONT')
          expect(await ensemble.leader()).not.toBe(first)
          await waitForWrites(WRITES)
        },
      )
      console.log(`leader stopped for ${pauseMs} ms: seed ${seed}, ${JSON.stringify(figures)}`)
      expect(violations, [...violations, replay].join('\n')).toEqual([])
      expect(figures.newSessions).toBe(0)
    },
  )
})

describeWith([...peers, 'kazoo'], 'an ensemble under faults, with kazoo', () => {
  it(`keeps the acknowledged writes of kazoo too after ${rounds} faults`, { timeout: timeout + 60_000 }, () =>
    expectSurvival(2),
  )
})
