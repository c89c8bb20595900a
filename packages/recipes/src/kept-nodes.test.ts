import { AbortedError, NoAuthError, QuotaExceededError, utf8, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { Group, NodeConflictError, Party, PersistentNode, TreeCache } from './index.ts'
import { NameService } from './name-service/index.ts'
import { Partitioner } from './partitioner/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { client, expireSession, other, run, setupEachTest, world } from './testing/setup.ts'
import { tree } from './testing/fault-fixture.ts'
import { rejectionOf } from './testing/world.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

// What is kept registered across sessions, and can no longer be.

setupEachTest('a', 'b')

interface Kept {
  readonly signal: AbortSignal
  release(): Promise<void>
}

/** Every way to register below `/r`. */
const ways: Record<string, (of: Client) => Promise<Kept>> = {
  'a persistent node': async (of) => {
    const node = new PersistentNode(of, '/r/x', 'data')
    await node.ready
    return { signal: node.signal, release: () => node.close() }
  },
  'a member of a group': (of) => new Group(of, '/r', { codec: utf8 }).join('x', ''),
  'a member of a party': (of) => new Party(of, '/r').join('x'),
  'an ephemeral name': (of) => new NameService(of, '/r', utf8).register('x', '', { ephemeral: true }),
  'an instance of a service': (of) =>
    new ServiceDiscovery(of, '/').register({ name: 'r', id: 'x', address: 'h', port: 1 }),
  'a permanent instance of a service': (of) =>
    new ServiceDiscovery(of, '/').register({ name: 'r', id: 'x', serviceType: 'PERMANENT' }),
}

const READ_ONLY = [{ scheme: 'world', id: 'anyone', perms: 1 }]
const READ_AND_DELETE = [{ scheme: 'world', id: 'anyone', perms: 1 | 8 }]

const ownPath = async (): Promise<string> =>
  (await run(tree(other, '/r'))).find((path) => path.startsWith('/r/'))!

describe.each(Object.entries(ways))('%s', (name, register) => {
  it('says that it is not created again when the servers refuse that', async () => {
    const kept = await run(register(client))
    await run(other.setACL('/r', READ_AND_DELETE))
    expect(kept.signal.aborted).toBe(false)
    await run(other.delete(await ownPath()))
    await world.advance(100)
    expect(kept.signal.reason).toBeInstanceOf(NoAuthError)
    await run(kept.release())
  })

  it('says so after its session has expired', async () => {
    // It outlives its session.
    if (name.includes('permanent')) return
    const kept = await run(register(client))
    await run(other.setACL('/r', READ_ONLY))
    await expireSession()
    expect(kept.signal.reason).toBeInstanceOf(NoAuthError)
    await run(kept.release())
  })

  it('says so when a quota has been used up', async () => {
    const kept = await run(register(client))
    const path = await ownPath()
    const isCreate = (frame: Uint8Array): boolean =>
      [1, 15].includes(new DataView(frame.buffer, frame.byteOffset).getInt32(8))
    world.answerWith(-125, { times: 9, matches: ({ frame }) => isCreate(frame) })
    await run(other.delete(path))
    await world.advance(100)
    expect(kept.signal.reason).toBeInstanceOf(QuotaExceededError)
    await run(kept.release())
  })

  it('says so when another client has taken its place meanwhile', async () => {
    // Every member of a party has a name of its own.
    if (name.includes('party')) return
    const kept = await run(register(client))
    const path = await ownPath()
    await run(
      other.multi([
        { op: 'delete', path },
        { op: 'create', path, mode: 'ephemeral' },
      ]),
    )
    await world.advance(100)
    expect(kept.signal.reason).toBeInstanceOf(NodeConflictError)
    await run(kept.release())
    expect((await run(other.exists(path)))?.ephemeralOwner).toBe(other.session.id)
  })

  it('is kept until it is released, which ends its signal too', async () => {
    const kept = await run(register(client))
    await run(other.delete(await ownPath()))
    await expireSession()
    expect(kept.signal.aborted).toBe(false)
    expect(await ownPath()).toMatch(/^\/r\//)
    await run(kept.release())
    expect(kept.signal.reason).toBeInstanceOf(AbortedError)
  })

  it('ends its signal with its client', async () => {
    const kept = await run(register(client))
    await run(client.close())
    await world.advance(100)
    expect(kept.signal.aborted).toBe(true)
  })
})

it('a persistent node says that its parent is missing, if it may not create it', async () => {
  await run(other.create('/r'))
  const node = new PersistentNode(client, '/r/x', '', { parents: false })
  await run(node.ready)
  await run(other.delete('/r', { recursive: true }))
  await world.advance(100)
  expect(node.signal.reason).toMatchObject({ code: 'NO_NODE' })
  await run(node.close())
})

it('a name that is not ephemeral ends its signal when it is released', async () => {
  const mine = await run(new NameService(client, '/r', utf8).register('x', ''))
  expect(mine.signal.aborted).toBe(false)
  await run(mine.release())
  expect(mine.signal.reason).toBeInstanceOf(AbortedError)
})

it('a site of transactions says that it cannot follow them any more, and ends its signal when it is released', async () => {
  const done = (): Promise<void> => Promise.resolve()
  const join = (path: string): Promise<Kept> =>
    new TwoPhaseCommit(client, path).join('x', {
      prepare: () => Promise.resolve('commit'),
      commit: done,
      abort: done,
    })
  await run(other.createMissing(['/r', '/s']))
  const [site, released] = [await run(join('/r')), await run(join('/s'))]
  await run(released.release())
  expect(released.signal.reason).toBeInstanceOf(AbortedError)
  await run(other.setACL('/r', [{ scheme: 'digest', id: 'a:b', perms: 31 }]))
  await expireSession()
  expect(site.signal.reason).toBeInstanceOf(NoAuthError)
  await run(site.release())
})

it('a partitioner rejects when it can no longer be a member', async () => {
  const failed = rejectionOf(
    new Partitioner(client, '/p', ['i'], { settleMs: 0, graceMs: 0 }).run(() => Promise.resolve()),
  )
  await world.advance(500)
  await run(other.setACL('/p/members', READ_AND_DELETE))
  const [member] = (await run(other.getChildren('/p/members'))).children
  await run(other.delete(`/p/members/${member}`))
  expect(await world.within(5000, failed)).toBeInstanceOf(NoAuthError)
})

describe('a cache that has ended', () => {
  it.each(['with an error', 'by its close'])('is stale (%s)', async (how) => {
    await run(other.create('/c/x', { parents: 'persistent' }))
    const cache = new TreeCache(client, '/c', how === 'with an error' ? { maxNodes: 2 } : {})
    await run(cache.ready)
    expect(cache.stale).toBe(false)
    if (how === 'with an error') await run(other.create('/c/y'))
    else await run(cache.close())
    await world.advance(100)
    expect(cache.stale).toBe(true)
  })

  it('makes a provider stale', async () => {
    const discovery = new ServiceDiscovery(client, '/s')
    await run(discovery.register({ name: 'api', id: 'x', address: 'h', port: 1 }))
    const api = await run(discovery.provider('api'))
    await run(other.setACL('/s/api', [{ scheme: 'digest', id: 'a:b', perms: 31 }]))
    await expireSession()
    expect(api.stale).toBe(true)
    await run(api.close())
  })
})
