import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { outputs } from './ensemble/same-trees.ts'
import { freePort } from './harness/ports.ts'
import { seedFromEnv } from './harness/prng.ts'

const ids = [1, 2, 3] as const
/** Longer than a restart on a busy machine. The leader ends a permit when its member is in step again. */
const PERMIT = '{"seconds": 60}'
/** Time for a busy machine to see the verdict and to send a request. */
const DRAIN_MS = 6000

async function startEnsemble(drainMs = 0): Promise<{
  ensemble: Ensemble
  ask: (id: number, path: string, body?: string) => Promise<number>
}> {
  const ports = await Promise.all(ids.map(freePort))
  const ensemble = await Ensemble.start({
    kinds: ['zabra', 'zabra', 'zabra'],
    config: { 'admin.enableServer': 'true', 'admin.role.operate': 'ip:127.0.0.1', 'stop.drainMs': drainMs },
    configOf: (id) => ({ 'admin.serverPort': ports[id - 1]! }),
  })
  /** Resolves to the status of a request over HTTP; to 0 while the member does not run. */
  const ask = async (id: number, path: string, body?: string): Promise<number> => {
    const url = `http://127.0.0.1:${ports[id - 1]}${path}`
    const answer = await fetch(url, body === undefined ? {} : { method: 'POST', body }).catch(() => undefined)
    await answer?.arrayBuffer()
    return answer?.status ?? 0
  }
  return { ensemble, ask }
}

const untilReady = (ask: (id: number, path: string) => Promise<number>, id: number): Promise<void> =>
  until(`member ${id} to be ready`, async () => (await ask(id, '/readyz')) === 200)

it('members that are restarted all at once, each with a permit, leave a quorum, and no call of a client fails', async () => {
  const { ensemble, ask } = await startEnsemble()
  const stopped = new Set<number>()
  const together: string[] = []
  const restart = async (id: number): Promise<void> => {
    await until(
      `a permit for member ${id}`,
      async () => (await ask(id, '/api/v1/stop-permit', PERMIT)) === 200,
      100_000,
    )
    for (const other of stopped) together.push(`${other} and ${id}`)
    stopped.add(id)
    // The leader grants a permit once the others are in step, which they are shortly before they serve.
    for (const other of ids.filter((each) => each !== id))
      await until(`member ${other} to serve`, async () => (await ensemble.modeOf(other)) !== undefined)
    await ensemble.stop(id)
    stopped.delete(id)
    await ensemble.start(id)
    await untilReady(ask, id)
  }
  const options = { seed: seedFromEnv(), sessionTimeout: 16_000, retries: 'idempotent' } as const
  const { violations, acknowledged, ...figures } = await runUnderLoad(
    ensemble,
    options,
    async (waitForWrites) => {
      await waitForWrites(30)
      await Promise.all(ids.map(restart))
      await waitForWrites(30)
    },
  )
  console.log(`rolling restart: seed ${options.seed}, ${acknowledged} writes, ${JSON.stringify(figures)}`)
  expect(violations, outputs(ensemble)).toEqual([])
  expect(figures).toMatchObject({ unknown: 0, newSessions: 0 })
  expect(together, 'members with a permit at the same time').toEqual([])
}, 180_000)

it('a member that gets SIGTERM is not ready, serves its clients on for stop.drainMs, and ends with 0', async () => {
  const { ensemble, ask } = await startEnsemble(DRAIN_MS)
  await untilReady(ask, 1)
  const client = await ensemble.connect(1)
  const member = ensemble.member(1)
  member.signal('SIGTERM')
  await until('the verdict', async () => (await ask(1, '/readyz')) === 503)
  await client.create('/late')
  await until('the end of the process', () => Promise.resolve(!member.isRunning))
  expect(member.exitCode).toBe(0)

  // Without permits nothing keeps members from stopping together, and the last one has no quorum.
  await ensemble.start(1)
  await Promise.all(ids.map((id) => untilReady(ask, id)))
  await Promise.all([ensemble.stop(1), ensemble.stop(2)])
  await until('the loss of the quorum', async () => (await ask(3, '/readyz')) === 503)
  expect(await ask(3, '/livez')).toBe(200)
  await Promise.all([ensemble.start(1), ensemble.start(2)])
  await Promise.all(ids.map((id) => untilReady(ask, id)))
}, 120_000)
