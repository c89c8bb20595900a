import { connect, type Client } from '@zabra/client'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { describeWith } from './harness/requirements.ts'
import { run } from './harness/servers.ts'
import { seedFromEnv } from './harness/prng.ts'

const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')

/** Returns the ids of the errors that `zabra doctor --migrate` finds in the files of a member. */
async function errorsOf(ensemble: Ensemble, id: number): Promise<string[]> {
  const { configFile } = ensemble.member(id)
  const { stdout } = await run(process.execPath, [zabra, 'doctor', '--migrate', configFile, '--json'])
  const lines = stdout.trimEnd().split('\n')
  const found = lines.map((line) => JSON.parse(line) as { id: string; severity?: string; steps?: string[] })
  expect(found.at(-1)!.steps!.length).toBeGreaterThan(3)
  return found.filter(({ severity }) => severity === 'error').map(({ id }) => id)
}

/** Calls as an application does, with the retries of the client, until `signal` aborts. Resolves to the calls and the failed ones. */
async function callUntil(
  signal: AbortSignal,
  servers: readonly string[],
): Promise<{ calls: number; failed: string[] }> {
  const client = await connect({ servers, sessionTimeoutMs: 16_000 })
  const failed: string[] = []
  let calls = 0
  const call = async (name: string, work: Promise<unknown>): Promise<void> => {
    calls++
    await work.catch((error: unknown) => failed.push(`${name}: ${String(error)}`))
  }
  await client.create('/calls', { data: '0' })
  while (!signal.aborted) {
    await call('setData', client.setData('/calls', String(calls), { idempotent: true }))
    await call('getData', client.getData('/calls'))
    await call('create', client.create('/calls/item-', { mode: 'ephemeralSequential' }))
    await call('delete', deleteItems(client))
  }
  await client.close()
  return { calls, failed }
}

/** Deletes the children of /calls, also those whose names a lost reply has kept from the client. */
async function deleteItems(client: Client): Promise<void> {
  const { children } = await client.getChildren('/calls')
  await Promise.all(children.map((name) => client.delete(`/calls/${name}`, { recursive: true })))
}

describeWith(['apache'], 'an ensemble of Apache ZooKeeper under load', () => {
  it('migrates to Zabra and back, the leader last, without losing a call, a write or a session', async () => {
    const seed = seedFromEnv()
    // The first server of Zabra is an observer.
    const ensemble = await Ensemble.start({
      kinds: ['apache-3.8', 'apache-3.8', 'apache-3.8', 'zabra'],
      observers: [4],
    })
    const voters = ensemble.ids.slice(0, 3)
    // The ensembles of these tests have a password that examples have too.
    for (const errors of await Promise.all(voters.map((id) => errorsOf(ensemble, id))))
      expect(errors).toEqual(['known-password'])
    const stop = new AbortController()
    const calling = callUntil(
      stop.signal,
      voters.map((id) => ensemble.member(id).address),
    )
    const { violations, ...figures } = await runUnderLoad(
      ensemble,
      { seed, sessionTimeout: 16_000 },
      async (waitForWrites) => {
        for (const kind of ['zabra', 'apache-3.8'] as const) {
          const first = await ensemble.leader()
          for (const id of [...voters.filter((id) => id !== first), first]) {
            await ensemble.replace(id, kind)
            await ensemble.leader()
            await waitForWrites(30)
          }
        }
        stop.abort()
        const { calls, failed } = await calling
        expect(failed).toEqual([])
        expect(calls).toBeGreaterThan(100)
      },
    ).finally(() => stop.abort())
    console.log(`migration: seed ${seed}, ${JSON.stringify(figures)}`)
    const outputs = ensemble.ids.map((id) => `--- ${id}\n${ensemble.member(id).output.slice(-2000)}`)
    expect(violations, [...violations, ...outputs].join('\n')).toEqual([])
    expect(figures.newSessions).toBe(0)
  }, 180_000)
})
