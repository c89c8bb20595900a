import { setTimeout as wait } from 'node:timers/promises'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { contradictions, ReadinessWatch, type Sample } from './ensemble/readiness-watch.ts'
import { freePort } from './harness/ports.ts'

const isLong = process.env['ZABRA_LONG_TESTS'] === '1'
const TICK_MS = 400
/** Less than syncLimit of these ensembles, 4 s. */
const PAUSE_MS = 3200
const OBSERVER = 4
/** What a busy machine adds to the times of this process and of four servers. */
const SLACK_MS = 1000
const limits = { falselyReadyMs: 2 * TICK_MS + 200 + SLACK_MS, falselyUnreadyMs: 1000 + SLACK_MS }

type Fault = readonly [what: string, play: (ensemble: Ensemble) => Promise<void>]

const follower = async (ensemble: Ensemble): Promise<number> => {
  const leader = await ensemble.leader()
  return ensemble.ids.find((id) => id !== leader && id !== OBSERVER)!
}

const faults: readonly Fault[] = [
  [
    'the leader is killed',
    async (ensemble) => {
      const leader = await ensemble.leader()
      await ensemble.kill(leader)
      await ensemble.leader()
      await ensemble.start(leader)
    },
  ],
  [
    // Followers have no answer from it for more than two ticks, and leave their roles later: after syncLimit.
    'the leader is paused',
    async (ensemble) => {
      const leader = await ensemble.leader()
      await ensemble.freeze(leader)
      await wait(PAUSE_MS)
      ensemble.member(leader).signal('SIGCONT')
    },
  ],
  [
    'a follower is asked to stop',
    async (ensemble) => {
      const id = await follower(ensemble)
      await ensemble.stop(id)
      await ensemble.start(id)
    },
  ],
]

const longFaults: readonly Fault[] = [
  [
    'a follower is cut off',
    async (ensemble) => {
      const heal = ensemble.isolate(await follower(ensemble))
      await wait(6000)
      heal()
    },
  ],
  [
    'the leader is cut off',
    async (ensemble) => {
      const heal = ensemble.isolate(await ensemble.leader())
      await wait(8000)
      heal()
    },
  ],
  [
    'all members are cut off from each other',
    async (ensemble) => {
      const heal = ensemble.ids.map((id) => ensemble.isolate(id))
      await wait(8000)
      for (const one of heal) one()
    },
  ],
  [
    'a follower receives a snapshot of 10 MB',
    async (ensemble) => {
      const id = await follower(ensemble)
      await ensemble.stop(id)
      const client = await ensemble.connect(await ensemble.leader())
      const data = 'x'.repeat(100_000)
      // More transactions than a leader keeps in memory to sync members.
      for (let node = 0; node < 600; node += 10)
        await Promise.all(
          Array.from({ length: 10 }, (_, index) =>
            client.create(`/large-${node + index}`, node < 100 ? data : ''),
          ),
        )
      await client.close()
      rmSync(join(ensemble.folder(id), 'version-2'), { recursive: true })
      await ensemble.start(id)
      await until('a snapshot', async () => ensemble.member(id).output.includes('"how":"snap"'))
    },
  ],
]

it('a member is ready while new clients get a session and a write through it, and at no other time', async () => {
  const adminPorts = await Promise.all([1, 2, 3, OBSERVER].map(freePort))
  const ensemble = await Ensemble.start({
    kinds: ['zabra', 'zabra', 'zabra', 'zabra'],
    observers: [OBSERVER],
    proxied: true,
    config: { tickTime: TICK_MS, 'admin.enableServer': 'true' },
    configOf: (id) => ({ 'admin.serverPort': adminPorts[id - 1]! }),
  })
  await ensemble.withClient(1, (client) => client.create('/probed'))
  const watches = ensemble.ids.map(
    (id) => new ReadinessWatch(ensemble.member(id).port, adminPorts[id - 1]!, '/probed'),
  )
  const allReady = (): Promise<void> =>
    until('all members to be ready', async () =>
      (await Promise.all(watches.map((watch) => watch.isReady()))).every(Boolean),
    )
  for (const [, play] of [...faults, ...(isLong ? longFaults : [])]) {
    await allReady()
    await play(ensemble)
  }
  await allReady()
  const results = await Promise.all(watches.map((watch) => watch.end(limits)))
  expect(results.map(({ contradictions: found }) => found)).toEqual([[], [], [], []])
  for (const { verdicts, successes } of results) expect(Math.min(verdicts, successes)).toBeGreaterThan(2)
})

it('a verdict that contradicts the clients for longer than the limits is found', () => {
  const every = (from: number, to: number, isGood: boolean): Sample[] =>
    Array.from({ length: (to - from) / 50 }, (_, index) => ({
      from: from + index * 50,
      to: from + index * 50 + 1,
      isGood,
    }))
  const strict = { falselyReadyMs: 1000, falselyUnreadyMs: 1000 }
  const outage = [...every(0, 1000, true), ...every(1000, 4000, false), ...every(4000, 5000, true)]
  expect(contradictions(outage, outage, strict)).toEqual([])
  expect(contradictions(every(0, 5000, true), outage, strict)).toEqual([
    expect.stringMatching(/^ready for 29\d\d ms while clients fail$/),
  ])
  expect(contradictions(outage, every(0, 5000, true), strict)).toEqual([
    expect.stringMatching(/^not ready for 29\d\d ms while clients succeed$/),
  ])
})
