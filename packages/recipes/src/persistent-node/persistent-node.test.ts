import { describe, expect, it } from 'vitest'
import { NoAuthError, NoNodeError } from '@zabra/client/core'
import { client, setupEachTest, expireSession, other, run, world } from '../testing/setup.ts'
import { connectionFaults, enumerateFaults, tree } from '../testing/fault-fixture.ts'
import { bytes, text } from '../testing/world.ts'
import { actionFor } from './decide.ts'
import { NodeConflictError, PersistentNode } from './persistent-node.ts'

setupEachTest('a', 'b')
const dataOf = async (path: string): Promise<string> => text((await run(other.getData(path))).data)

describe('action for an existing znode', () => {
  const keeper = { session: 2n, earlier: new Set([1n]), ephemeral: true }
  it('keeps, updates and replaces only the own znode', () => {
    expect(actionFor({ owner: 2n, hasData: true }, keeper)).toBe('keep')
    expect(actionFor({ owner: 2n, hasData: false }, keeper)).toBe('write')
    expect(actionFor({ owner: 1n, hasData: true }, keeper)).toBe('replace')
    expect(actionFor({ owner: 3n, hasData: true }, keeper)).toBe('conflict')
    expect(actionFor({ owner: 0n, hasData: true }, keeper)).toBe('conflict')
    expect(actionFor({ owner: 0n, hasData: true }, { ...keeper, ephemeral: false })).toBe('keep')
  })
})

describe('a persistent node', () => {
  it('is created again when another client deletes it, until it is closed', async () => {
    const node = new PersistentNode(client, '/p/node', bytes('1'))
    expect(await run(node.ready)).toBe('/p/node')
    for (let n = 0; n < 10; n++) {
      await run(other.delete('/p/node'))
      await world.settle()
      expect(await dataOf('/p/node')).toBe('1')
    }
    await run(node.close())
    expect(await run(other.exists('/p/node'))).toBeUndefined()
    expect(world.server.stats().watches).toBe(0)
  })

  it('keeps what another client writes over it until it gets data or is created again', async () => {
    const node = new PersistentNode(client, '/n', 'own')
    await run(node.ready)
    await run(other.setData('/n', 'theirs'))
    await world.advance(1000)
    expect(await dataOf('/n')).toBe('theirs')
    await run(node.setData('own'))
    expect(await dataOf('/n')).toBe('own')
    await run(other.setData('/n', 'theirs'))
    await run(other.delete('/n'))
    await world.advance(1000)
    expect(await dataOf('/n')).toBe('own')
    await run(node.close())
  })

  it('is created again when another client deletes it between the read and the write', async () => {
    const node = new PersistentNode(client, '/n', bytes('1'))
    await run(node.ready)
    // The first request with the new data tries to create the znode, the second one writes.
    const held: (() => void)[] = []
    world.faults.toServer = (chunk, wire) => {
      if (wire.server.host !== 'a' || !text(chunk).includes('newest')) return chunk
      held.push(() => wire.send(chunk))
      return held.length === 2 ? undefined : chunk
    }
    const written = node.setData(bytes('newest'))
    await world.settle()
    expect(held).toHaveLength(2)
    await run(other.delete('/n'))
    held[1]!()
    await run(written)
    expect(await dataOf('/n')).toBe('newest')
    await run(node.close())
  })

  it('is written and removed in the end, although its requests lose the connection repeatedly', async () => {
    const node = new PersistentNode(client, '/n', bytes('1'))
    await run(node.ready)
    let left = 0
    world.faults.toServer = (chunk, wire) => {
      if (left === 0 || wire.server.host !== 'a' || !text(chunk).includes('/n')) return chunk
      left--
      wire.cut()
      return undefined
    }
    left = 12
    await world.within(60_000, node.setData(bytes('2')))
    expect([left, await dataOf('/n')]).toEqual([0, '2'])
    left = 12
    await world.within(60_000, node.close())
    expect([left, await run(other.exists('/n'))]).toEqual([0, undefined])
  })

  it('is created in a new session with the newest data (CURATOR-146, CURATOR-181, CURATOR-241)', async () => {
    const patient = await world.client({ servers: 'b:2181' })
    const node = new PersistentNode(client, '/n', bytes('1'))
    await run(node.ready)
    await run(node.setData(bytes('2')))
    await expireSession()
    expect(text((await run(patient.getData('/n'))).data)).toBe('2')
    await run(node.close())
    expect(await run(patient.exists('/n'))).toBeUndefined()
  })

  it('accepts data before it exists', async () => {
    const node = new PersistentNode(client, '/n', bytes('1'))
    await run(node.setData(bytes('2')))
    expect(await dataOf('/n')).toBe('2')
    await run(node.close())
  })

  it('never takes over the znode of another client', async () => {
    await run(other.create('/n', { data: bytes('theirs'), mode: 'ephemeral' }))
    const node = new PersistentNode(client, '/n', bytes('mine'))
    await expect(run(node.ready)).rejects.toBeInstanceOf(NodeConflictError)
    await run(node.close())
    expect(await dataOf('/n')).toBe('theirs')
  })

  it('waits for a conflicting znode with onConflict wait', async () => {
    await run(other.create('/n', { data: bytes('theirs'), mode: 'ephemeral' }))
    const node = new PersistentNode(client, '/n', bytes('mine'), { onConflict: 'wait' })
    await world.settle()
    await run(other.delete('/n'))
    await run(node.ready)
    expect(await dataOf('/n')).toBe('mine')
    await run(node.close())
  })

  it('leaves nothing when it is closed while waiting', async () => {
    await run(other.create('/n', { data: bytes('theirs') }))
    const node = new PersistentNode(client, '/n', bytes('mine'), { onConflict: 'wait' })
    await world.settle()
    await run(node.close())
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
    await expect(run(node.ready)).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('rejects ready with the reason instead of retrying without end', async () => {
    const orphan = new PersistentNode(client, '/none/n', bytes(''), { parents: false })
    await expect(run(orphan.ready)).rejects.toBeInstanceOf(NoNodeError)
    await run(other.create('/locked', { acl: [{ perms: 1, scheme: 'world', id: 'anyone' }] }))
    const refused = new PersistentNode(client, '/locked/n', bytes(''))
    await expect(run(refused.ready)).rejects.toBeInstanceOf(NoAuthError)
    await expect(run(refused.setData(bytes('x')))).rejects.toBeInstanceOf(NoAuthError)
  })

  it('keeps the name of its first sequential create', async () => {
    const node = new PersistentNode(client, '/s/n-', bytes('1'), { mode: 'ephemeralSequential' })
    const path = await run(node.ready)
    await run(other.delete(path))
    await world.settle()
    expect((await run(other.exists(path)))?.ephemeralOwner).toBe(client.session.id)
    await run(node.close())
    expect(await run(tree(other, '/s'))).toEqual(['/s'])
  })

  it('stays after close with leaveBehind', async () => {
    const node = new PersistentNode(client, '/n', bytes('1'), { mode: 'persistent', leaveBehind: true })
    await run(node.ready)
    await run(node.close())
    expect(await dataOf('/n')).toBe('1')
  })
})

it('example: a worker that is visible while it works', async () => {
  const node = new PersistentNode(client, '/workers/7', bytes('idle'))
  await run(node.ready)
  await run(node.setData(bytes('busy')))
  expect(await dataOf('/workers/7')).toBe('busy')
  await run(node.close())
  expect(await run(other.getChildren('/workers'))).toMatchObject({ children: [] })
})

it('exists with the newest data until it is closed under any fault at any request', async () => {
  const played = await enumerateFaults(async (fixture, { client: victim }) => {
    const peer = await fixture.world.client()
    const node = new PersistentNode(victim, '/p/n', bytes('1'))
    await node.ready
    await node.setData(bytes('2'))
    await peer.delete('/p/n', { missingOk: true })
    await fixture.waitUntilQuiet()
    expect(text((await peer.getData('/p/n')).data)).toBe('2')
    await node.close()
    await fixture.waitUntilQuiet()
    expect(await peer.exists('/p/n')).toBeUndefined()
  }, connectionFaults)
  expect(played).toBeGreaterThan(30)
})
