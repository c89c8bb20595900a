import { connect, ZooKeeperError, type Client } from '@zabra/client'
import { afterAll, expect, it } from 'vitest'
import { cleanUp, Server } from './harness/servers.ts'

const DATA = new Uint8Array(16_384)
/** More than fits. */
const MOST = 20_000
const AT_ONCE = 100

afterAll(cleanUp)

/** Creates znodes until one is refused. Returns their paths. */
async function fill(client: Client): Promise<string[]> {
  const paths: string[] = []
  for (let first = 0; first < MOST; first += AT_ONCE) {
    const results = await Promise.allSettled(
      Array.from({ length: AT_ONCE }, (_, at) => client.create(`/full/${first + at}`, { data: DATA })),
    )
    for (const [at, result] of results.entries()) {
      if (result.status === 'fulfilled') paths.push(`/full/${first + at}`)
      else if (!ZooKeeperError.is(result.reason, 'QUOTA_EXCEEDED')) throw result.reason
    }
    if (paths.length < first + AT_ONCE) return paths
  }
  return paths
}

async function inBatches(paths: readonly string[], call: (path: string) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < paths.length; at += AT_ONCE)
    await Promise.all(paths.slice(at, at + AT_ONCE).map(call))
}

it('a server whose memory for data is full refuses more, serves on, starts again, and takes writes once there is room', async () => {
  const server = await Server.start({ kind: 'zabra', config: { dataMemory: '96M' } })
  const client = await connect({ servers: [server.address], waitForever: true })
  await client.create('/full')
  const paths = await fill(client)
  expect(paths.length).toBeGreaterThan(500)
  expect(paths.length).toBeLessThan(MOST)
  expect(server.output).toContain('the memory for data is full')
  // Data that do not get longer, deletions and reads are not refused.
  await client.setData(paths[0]!, DATA.slice(1))
  expect((await client.getData(paths[1]!)).data).toHaveLength(DATA.length)

  await server.stop()
  await server.start()
  expect((await client.getChildren('/full')).children).toHaveLength(paths.length)
  const half = Math.ceil(paths.length / 2)
  await inBatches(paths.slice(0, half), (path) => client.delete(path))
  // What is deleted counts until V8 collects it, which an idle process puts off: the reads of clients make it collect.
  const tryAgain = async (): Promise<string> => {
    await inBatches(paths.slice(half), (path) => client.getData(path))
    return client.create('/full/again', { data: DATA }).then(() => 'created', String)
  }
  await expect.poll(tryAgain, { timeout: 60_000 }).toBe('created')
  await client.close()
})
