import { connect } from '@zabra/client'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { longestTurn } from 'zabra-bench/busy'
import { Ensemble } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { freePort } from './harness/ports.ts'
import { Prng, seedFromEnv } from './harness/prng.ts'
import { scratch, spawnOwned } from './harness/servers.ts'
import { describeSamples, Sampler, type Sample } from './soak/samples.ts'
import { SoakDisks } from './soak/soak-disks.ts'

/** How long the soak lasts; it is left out by default. */
const minutes = Number(process.env['ZABRA_SOAK_MINUTES'] ?? 0)
const znodes = Number(process.env['ZABRA_SOAK_ZNODES'] ?? 1_000_000)
/** How long no member is disturbed between two disturbances, in milliseconds. */
const calmMs = 1000 * Number(process.env['ZABRA_SOAK_CALM'] ?? 15)
const seed = seedFromEnv()
/** Writes to acknowledge between two disturbances. */
const WRITES = 50
/** How long a disk stays full or slow, in milliseconds. */
const DISK_MS = 4000
/** Creations of one transaction. */
const BATCH = 1000
/** Milliseconds between two requests of a client: the members, not the clients, should take the processors. */
const PAUSE_MS = 10
/** The longest turn that an undisturbed member may take, in milliseconds of processor time. */
const LONGEST_TURN_MS = 20
/** Znodes below one parent. */
const SIBLINGS = 10_000
const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')
const SUPER_USER = 'digest:super:secret'

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** Creates znodes below `/soak`. */
async function fill(servers: readonly string[]): Promise<void> {
  const client = await connect({ servers, sessionTimeoutMs: 30_000, waitForever: true })
  const data = new Uint8Array(64)
  for (let first = 0; first < znodes; first += SIBLINGS) {
    const parent = `/soak/${first / SIBLINGS}`
    await client.createMissing([parent])
    for (let from = first; from < Math.min(first + SIBLINGS, znodes); from += BATCH) {
      const names = Array.from({ length: Math.min(BATCH, znodes - from) }, (_, index) => from + index)
      await client.multi(names.map((name) => ({ op: 'create', path: `${parent}/${name}`, data })))
    }
  }
  await client.close()
}

/** Runs the command line. Resolves to its output; rejects when it fails. */
function cli(...args: string[]): Promise<string> {
  const child = spawnOwned(process.execPath, [zabra, ...args], { env: { ZABRA_AUTH: SUPER_USER } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((done, fail) =>
    child.once('close', (code) =>
      code === 0 ? done(output) : fail(new Error(`zabra ${args.join(' ')} ended with ${code}: ${output}`)),
    ),
  )
}

interface Soak {
  readonly ensemble: Ensemble
  readonly disks: SoakDisks
  readonly prng: Prng
  readonly backup: () => Promise<void>
}

/** What disturbs the members, one after another. */
const disturbances: Readonly<Record<string, (soak: Soak) => Promise<void>>> = {
  async 'rolling restart'({ ensemble }) {
    for (const id of ensemble.ids) {
      await ensemble.stop(id)
      await ensemble.start(id)
      await ensemble.leader()
    }
  },
  async 'leader killed'({ ensemble }) {
    const leader = await ensemble.leader()
    await ensemble.kill(leader)
    await ensemble.start(leader)
  },
  backup: ({ backup }) => backup(),
  'slow disk': (soak) => disturbDisk(soak, 'slow'),
  'full disk': (soak) => disturbDisk(soak, 'full'),
}

async function disturbDisk({ ensemble, disks, prng }: Soak, state: 'full' | 'slow'): Promise<void> {
  const id = ensemble.ids[prng.int(ensemble.ids.length)]!
  disks.set(id, state, true)
  await pause(DISK_MS)
  disks.set(id, state, false)
  // A member may have stopped because its disk was full.
  if (!ensemble.member(id).isRunning) await ensemble.start(id)
}

describe.runIf(minutes > 0)(`a soak of ${minutes} minutes with ${znodes} znodes`, () => {
  it(
    'has no violation, no growing heap, no turn of 20 ms, and backups that restore',
    { timeout: minutes * 180_000 + 1_800_000 },
    async () => {
      const disks = new SoakDisks()
      const ports = await Promise.all([1, 2, 3].map(() => freePort()))
      const ensemble = await Ensemble.start({
        kinds: ['zabra', 'zabra', 'zabra'],
        config: { 'admin.enableServer': 'true', 'admin.serverAddress': '127.0.0.1' },
        configOf: (id) => ({ 'admin.serverPort': ports[id - 1]! }),
        envOf: (id) => disks.environmentOf(id),
      })
      await fill(ensemble.ids.map((id) => ensemble.member(id).address))
      const target = scratch('soak-backups')
      const backup = async (): Promise<void> => {
        const id = await ensemble.leader()
        await cli('backup', 'now', '--target', target, '--admin', `http://127.0.0.1:${ports[id - 1]}`)
      }
      const soak = { ensemble, disks, prng: new Prng(seed), backup }
      const names = Object.keys(disturbances)
      const [disturbed, calm]: [Sample[][], Sample[][]] = [[], []]
      const sampler = new Sampler(ensemble)
      const takeSample = async (name: string, samples: Sample[][]): Promise<void> => {
        const taken = await sampler.take()
        samples.push(taken)
        console.log(`soak: ${name}, ${describeSamples(taken)}`)
      }
      const until = Date.now() + minutes * 60_000
      const { violations, ...figures } = await runUnderLoad(
        ensemble,
        { seed, sessionTimeout: 30_000, pauseMs: PAUSE_MS, mayRefuse: (error) => disks.mayRefuse(error) },
        async (waitForWrites) => {
          for (let round = 0; Date.now() < until; round++) {
            const name = names[round % names.length]!
            await disturbances[name]!(soak)
            await ensemble.leader()
            await waitForWrites(WRITES)
            disks.recovered()
            await takeSample(name, disturbed)
            await pause(calmMs)
            await takeSample('calm', calm)
          }
        },
      )
      console.log(`soak: seed ${seed}, ${calm.length} disturbances, ${JSON.stringify(figures)}`)
      console.log(`soak: all disturbances, ${describeSamples(disturbed.flat())}`)
      console.log(`soak: all calm times, ${describeSamples(calm.flat())}`)
      console.log(await cli('backup', 'verify', '--deep', '--latest', '--target', target))
      expect(violations).toEqual([])
      expect(largestHeap(calm.slice(-names.length))).toBeLessThan(
        2 * largestHeap(calm.slice(0, names.length)),
      )
      // A process runs code for the first time when it starts and when its role changes.
      expect(longestBusy(calm)).toBeLessThan(LONGEST_TURN_MS)
    },
  )
})

const largestHeap = (samples: readonly Sample[][]): number =>
  Math.max(...samples.flat().map(({ heapBytes }) => heapBytes))

const longestBusy = (samples: readonly Sample[][]): number =>
  longestTurn(
    samples.flat().flatMap(({ turns }) => turns),
    'busy',
  )?.busy ?? 0
