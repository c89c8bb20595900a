import { expect, it, vi } from 'vitest'
import { endChunks } from '../backup/index.ts'
import { createOf } from '../core/testing/create-of.ts'
import type { Tree } from '../core/tree/index.ts'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
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

/** Returns a server that is in the middle of a large transaction. */
async function startInTransaction() {
  const server = await TestServer.start({ adminRoleBackup: ['ip:127.0.0.1'] })
  const client = await server.connect()
  client.create(1, '/a')
  await server.untilIdle()
  const target = server.server as unknown as AdminTarget
  const tree = target.service!.tree as Tree
  tree.beginApply()
  return { server, target, tree }
}

it('a log is described as of the end of a large transaction, also where the next one begins at once', async () => {
  const { server, target, tree } = await startInTransaction()
  const { lastZxid, nodeCount } = tree
  const reading = localSource(target).readLog(lastZxid - 1)
  tree.endApply(lastZxid)
  const header = { sessionId: 0n, cxid: 0, zxid: lastZxid + 1, time: 0 }
  tree.beginApply()
  tree.applyPart(header, createOf('/part'))
  expect(await reading).toMatchObject({ upTo: lastZxid, nodes: nodeCount })
  tree.endApply(header.zxid)
  await server.stop()
})

it('a log is not read where the role has ended meanwhile: the tree may then have what was never committed', async () => {
  const { server, target, tree } = await startInTransaction()
  const reading = localSource(target).readLog(tree.lastZxid - 1)
  const asked = server.http.request(`/api/v1/log?after=0x${(tree.lastZxid - 1).toString(16)}`)
  await server.untilIdle()
  const service = vi.spyOn(target, 'service', 'get').mockReturnValue(undefined)
  tree.endApply(tree.lastZxid)
  await expect(reading).rejects.toThrow('The server serves no clients')
  expect((await asked).status).toBe(503)
  service.mockRestore()
  await server.stop()
})

it('a snapshot is refused whose role has ended while it was written: it may have what was never committed', async () => {
  const ensemble = await Ensemble.start(3, { adminEnabled: true, adminRoleBackup: ['ip:127.0.0.1'] })
  const leader = ensemble.leader!
  const client = await ensemble.client(leader, { timeout: 40_000 })
  const { disk, http } = ensemble.member(leader)
  const openWrite = disk.openWrite.bind(disk)
  let isWriting = false
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  disk.openWrite = async (path, options) => {
    if (path.includes('writing.')) {
      isWriting = true
      await held
    }
    return openWrite(path, options)
  }
  let status = 0
  void http.request('/api/v1/snapshots', { method: 'POST' }).then((answer) => (status = answer.status))
  await ensemble.until('the snapshot', () => isWriting)
  const source = localSource(ensemble.server(leader) as unknown as AdminTarget)
  const taking = expect(source.takeSnapshot()).rejects.toThrow('The server serves no clients')
  for (const id of [1, 2, 3]) if (id !== leader) ensemble.member(id).silence()
  client.create(1, '/uncommitted')
  await ensemble.until('the end of the role', () => !ensemble.server(leader).serving)
  release()
  await ensemble.until('the answer', () => status !== 0)
  const file = disk.paths().findLast((path) => path.startsWith('/data/version-2/snapshot.'))!
  expect(new TextDecoder('latin1').decode(await disk.readFile(file))).toContain('uncommitted')
  expect(status).toBe(503)
  await taking
})
