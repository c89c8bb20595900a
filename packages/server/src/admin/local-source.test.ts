import { expect, it } from 'vitest'
import { endChunks } from '../backup/index.ts'
import { TestServer } from '../testing/test-server.ts'
import type { AdminTarget } from './admin-target.ts'
import { localSource } from './local-source.ts'

it.each([0, 1, 2])(
  'a log that a backup ends after %i chunks is closed: until then no purge removes its files',
  async (chunks) => {
    const server = await TestServer.start()
    const client = await server.connect()
    const { lastZxid } = server.server.stats()
    // Each fills a chunk.
    for (const id of [1, 2, 3]) client.create(id, `/${id}`, 0, 'x'.repeat(1 << 17))
    await server.untilIdle()
    const target = server.server as unknown as AdminTarget
    let open = 0
    const history = target.readHistory.bind(target)
    target.readHistory = (after, upTo) => {
      const cursor = history(after, upTo)
      open = 1
      return Object.assign(cursor, {
        return: async () => ((open = 0), { done: true as const, value: undefined }),
      })
    }
    const log = (await localSource(target).readLog(lastZxid))!
    const iterator = log.chunks[Symbol.asyncIterator]()
    for (let i = 0; i < chunks; i++) expect((await iterator.next()).value).toHaveProperty('length')
    expect(open).toBe(1)
    await endChunks(log.chunks)
    expect(open).toBe(0)
    await server.stop()
  },
)
