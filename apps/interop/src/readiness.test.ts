import { setTimeout as wait } from 'node:timers/promises'
import { execFileSync } from 'node:child_process'
import { realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { Ensemble, until, type EnsembleOptions } from './ensemble/ensemble.ts'
import { NeutralClock } from './ensemble/neutral-clock.ts'
import { contradictions, ReadinessWatch, type Sample } from './ensemble/readiness-watch.ts'
import { Client } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { describeWith, isLong } from './harness/requirements.ts'
import { scratch, Server } from './harness/servers.ts'

const ENOSPC = 28
const TICK_MS = 400
/** Less than syncLimit of these ensembles, 4 s. */
const PAUSE_MS = 3200
const OBSERVER = 4
/** What four servers and two probes of each add, beyond what a neutral request takes. */
const SLACK_MS = 500
const limits = { falselyReadyMs: 2 * TICK_MS + 200 + SLACK_MS, falselyUnreadyMs: 1000 + SLACK_MS }

type Play = (ensemble: Ensemble, watchOf: (id: number) => ReadinessWatch) => Promise<void>
type Fault = readonly [what: string, play: Play]

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
    'a follower is cut off, and serves reads alone',
    async (ensemble, watchOf) => {
      const id = await follower(ensemble)
      const heal = ensemble.isolate(id)
      await until('reads', async () => {
        const [isReady, isReadyForReads] = [
          await watchOf(id).isReady(),
          await watchOf(id).isReady('?for=reads'),
        ]
        return !isReady && isReadyForReads
      })
      await wait(3000)
      expect(await ensemble.modeOf(id)).toBe('read-only')
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

/** Plays faults one after the other, while each member is watched; `envOf` returns the environment of a member. */
async function watchFaults(faults: readonly Fault[], envOf?: EnsembleOptions['envOf']): Promise<void> {
  const adminPorts = await Promise.all([1, 2, 3, OBSERVER].map(freePort))
  await using neutral = await Server.start({ kind: 'zabra' })
  const client = await Client.connect(neutral.port)
  await client.create('/probed')
  await client.close()
  const ensemble = await Ensemble.start({
    kinds: ['zabra', 'zabra', 'zabra', 'zabra'],
    observers: [OBSERVER],
    proxied: true,
    config: { tickTime: TICK_MS, 'admin.enableServer': 'true', 'readonlymode.enabled': 'true' },
    configOf: (id) => ({ 'admin.serverPort': adminPorts[id - 1]! }),
    ...(envOf === undefined ? {} : { envOf }),
  })
  await ensemble.withClient(1, (one) => one.create('/probed'))
  const clock = NeutralClock.bySessions(neutral.port, '/probed')
  const watches = ensemble.ids.map(
    (id) => new ReadinessWatch(ensemble.member(id).port, adminPorts[id - 1]!, '/probed', clock),
  )
  const allReady = (): Promise<void> =>
    until('all members to be ready', async () =>
      (await Promise.all(watches.map((watch) => watch.isReady()))).every(Boolean),
    )
  for (const [, play] of faults) {
    await allReady()
    await play(ensemble, (id) => watches[id - 1]!)
  }
  await allReady()
  const results = await Promise.all(watches.map((watch) => watch.end(limits)))
  await clock.end()
  expect(results.map(({ contradictions: found }) => found)).toEqual([[], [], [], []])
  for (const { verdicts, successes } of results) expect(Math.min(verdicts, successes)).toBeGreaterThan(2)
}

const LONG_MS = 600_000

it(
  'a member is ready while new clients get a session and a write through it, and at no other time',
  () => watchFaults([...faults, ...(isLong ? longFaults : [])]),
  LONG_MS,
)

describeWith(['cc'], 'a member whose disk gets full', () => {
  const source = resolve(import.meta.dirname, '../c/disk-faults.c')

  it.runIf(isLong)(
    'is ready while new clients get a session and a write through it, and at no other time',
    async () => {
      const library = join(scratch('readiness-faults'), 'disk-faults.so')
      execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { stdio: 'pipe' })
      const folder = scratch('readiness-switches')
      const fill = async (ensemble: Ensemble, id: number): Promise<void> => {
        const fault = join(folder, String(id))
        writeFileSync(fault, `write ${ENOSPC}`)
        await until('a full disk', async () => ensemble.member(id).output.includes('ENOSPC'))
        await wait(3000)
        rmSync(fault)
      }
      await watchFaults(
        [
          ['the disk of a follower gets full', async (ensemble) => fill(ensemble, await follower(ensemble))],
          ['the disk of the leader gets full', async (ensemble) => fill(ensemble, await ensemble.leader())],
          ['the disk of the observer gets full', (ensemble) => fill(ensemble, OBSERVER)],
        ],
        (id) => ({
          LD_PRELOAD: library,
          ZABRA_FAULT: join(folder, String(id)),
          ZABRA_FAULT_FOLDER: realpathSync(tmpdir()),
        }),
      )
    },
    LONG_MS,
  )
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
