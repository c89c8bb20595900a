import { describe, expect, it } from 'vitest'
import {
  BadVersionError,
  ClosedError,
  InvalidACLError,
  MultiError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NoChrootError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  UsageError,
  ZooKeeperError,
} from './errors.ts'
import { client, run, setupEachTest, world } from './testing/setup.ts'
import { bytes, text } from './testing/manual-world.ts'

setupEachTest({})

describe('operations', () => {
  it('a client creates, reads, writes and deletes a znode', async () => {
    const { path, stat } = await run(client.create('/a', { data: bytes('one') }))
    expect(path).toBe('/a')
    expect(stat).toMatchObject({ version: 0, dataLength: 3, ephemeralOwner: 0n, numChildren: 0 })
    expect(stat.czxid).toBe(stat.mzxid)
    const written = await run(client.setData('/a', bytes('four'), { version: 0 }))
    expect(written).toMatchObject({ version: 1, dataLength: 4, czxid: stat.czxid })
    const read = await run(client.getData('/a'))
    expect(text(read.data)).toBe('four')
    expect(read.data.constructor).toBe(Uint8Array)
    expect(read.stat.mzxid).toBe(written.mzxid)
    await run(client.delete('/a', { version: 1 }))
    expect(await run(client.exists('/a'))).toBeUndefined()
  })

  it('czxid grows when a znode is deleted and created again, so it can serve as a fencing token', async () => {
    const numbers: bigint[] = []
    for (let i = 0; i < 3; i++) {
      numbers.push((await run(client.create('/lock', { mode: 'ephemeral' }))).stat.czxid)
      await run(client.delete('/lock'))
    }
    expect(numbers[1]! > numbers[0]! && numbers[2]! > numbers[1]!).toBe(true)
  })

  it('a client exposes its error policy to recipes', async () => {
    expect(client.errorPolicy).toBe('connection')
    const policy = { lease: { marginMs: 500 } }
    const leasing = await world.client({ errorPolicy: policy })
    expect(leasing.errorPolicy).toEqual(policy)
    const before = world.clock.monotonic()
    await run(leasing.syncCommitted())
    expect(leasing.leaseHorizon).toBe(before + 12_000 - 500)
  })

  it('a client keeps null and empty data apart, in single calls and in a multi', async () => {
    await run(client.create('/empty'))
    await run(client.create('/null', { data: null }))
    await run(client.multi([{ op: 'create', path: '/both', data: null }]))
    const read = await Promise.all(['/empty', '/null', '/both'].map((path) => run(client.getData(path))))
    expect(read.map(({ isNull }) => isNull)).toEqual([false, true, true])
    expect(read.map(({ data }) => data.length)).toEqual([0, 0, 0])
    await run(client.setData('/empty', null))
    expect((await run(client.getData('/empty'))).isNull).toBe(true)
  })

  it('replies carry order numbers in the order of their arrival', async () => {
    await run(client.create('/a'))
    const results = await run(
      Promise.all([client.getData('/a'), client.exists('/a'), client.getChildren('/')]),
    )
    const orders = results.map((result) => result!.order)
    expect(orders).toEqual(orders.toSorted((a, b) => a - b))
    expect(new Set(orders).size).toBe(3)
  })

  it('returned data does not share memory with the buffers of the connection', async () => {
    await run(client.create('/a', { data: bytes('x'.repeat(5000)) }))
    const { data } = await run(client.getData('/a'))
    expect(data.buffer.byteLength).toBe(5000)
  })

  it('a create without data stores an empty array', async () => {
    await run(client.create('/a'))
    expect((await run(client.getData('/a'))).data).toEqual(new Uint8Array(0))
  })

  it('a client creates a container, which the server removes after its last child', async () => {
    const { path, stat } = await run(client.create('/n', { mode: 'container' }))
    expect(path).toBe('/n')
    expect(stat.ephemeralOwner).toBe(0n)
    await run(client.create('/n/child'))
    await run(client.delete('/n/child'))
    await world.advance(120_000)
    expect(await run(client.exists('/n'))).toBeUndefined()
  })

  it('an ephemeral znode belongs to the session and is removed with it', async () => {
    const { stat } = await run(client.create('/e', { mode: 'ephemeral' }))
    expect(stat.ephemeralOwner).toBe(client.session.id)
    expect(await run(client.getEphemerals())).toEqual(['/e'])
    const other = await world.client()
    await run(client.close())
    expect(await run(other.exists('/e'))).toBeUndefined()
  })

  it('a client creates znodes with a time to live', async () => {
    const { path } = await run(client.create('/t', { mode: 'persistentWithTtl', ttlMs: 5000 }))
    expect(path).toBe('/t')
    const { path: second } = await run(
      client.create('/t-', { mode: 'persistentSequentialWithTtl', ttlMs: 5000, protected: false }),
    )
    expect(second).toBe('/t-0000000001')
  })

  it('a sequential create gets a number, and a protection prefix unless protected is false', async () => {
    const plain = await run(client.create('/s-', { mode: 'persistentSequential', protected: false }))
    expect(plain.path).toBe('/s-0000000000')
    const marked = await run(client.create('/s-', { mode: 'ephemeralSequential' }))
    expect(marked.path).toMatch(
      /^\/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-s-0000000001$/,
    )
    const bare = await run(client.create('/', { mode: 'persistentSequential', protected: false }))
    expect(bare.path).toBe('/0000000002')
  })

  it('getChildren returns the children with the stat of their parent', async () => {
    await run(Promise.all([client.create('/b'), client.create('/a')]))
    const { children, stat } = await run(client.getChildren('/'))
    expect(children.toSorted()).toEqual(['a', 'b', 'zookeeper'])
    expect(stat.numChildren).toBe(3)
    expect(await run(client.getAllChildrenNumber('/'))).toBe(5)
  })

  it('a client reads and writes access control lists', async () => {
    await run(client.create('/a'))
    const acl = [{ perms: 1, scheme: 'world', id: 'anyone' }]
    expect(await run(client.setACL('/a', acl, { version: 0 }))).toMatchObject({ aversion: 1 })
    expect((await run(client.getACL('/a'))).acl).toEqual(acl)
    await expect(run(client.setData('/a', bytes('')))).rejects.toThrow(NoAuthError)
    await expect(run(client.setACL('/', [], {}))).rejects.toThrow(InvalidACLError)
  })

  it('a client authenticates, and whoAmI returns its identities', async () => {
    await run(client.addAuth('digest', bytes('bob:secret')))
    expect(await run(client.whoAmI())).toContainEqual({ scheme: 'digest', id: 'bob' })
  })

  it('a multi returns typed results', async () => {
    const [created, changed, checked, removed] = await run(
      client.multi([
        { op: 'create', path: '/m', data: bytes('1') },
        { op: 'setData', path: '/m', data: bytes('22'), version: 0 },
        { op: 'check', path: '/m', version: 1 },
        { op: 'delete', path: '/m' },
      ]),
    )
    expect(created.path).toBe('/m')
    expect(changed.dataLength).toBe(2)
    expect([checked, removed]).toEqual([undefined, undefined])
  })

  it('a failed multi names the operation that failed, and applies none', async () => {
    const failed = run(
      client.multi([
        { op: 'create', path: '/m' },
        { op: 'check', path: '/none' },
        { op: 'create', path: '/n' },
      ]),
    )
    await expect(failed).rejects.toMatchObject({
      name: 'MultiError',
      code: 'MULTI_FAILED',
      index: 1,
      causeCode: 'NO_NODE',
      path: '/none',
      cause: { code: 'NO_NODE' },
    })
    await expect(failed).rejects.toThrow(MultiError)
    await expect(failed).rejects.toThrow('operation 1 failed with NO_NODE')
    expect(await run(client.exists('/m'))).toBeUndefined()
  })

  it('a multi creates container, TTL and sequential znodes', async () => {
    const results = await run(
      client.multi([
        { op: 'create', path: '/c', mode: 'container' },
        { op: 'create', path: '/t', mode: 'persistentWithTtl', ttlMs: 1000 },
        { op: 'create', path: '/s-', mode: 'ephemeralSequential' },
      ]),
    )
    expect(results.map(({ path }) => path)).toEqual(['/c', '/t', '/s-0000000002'])
  })

  it('a multiRead reads many znodes in one request', async () => {
    await run(client.create('/a', { data: bytes('1') }))
    const [data, children, missing] = await run(
      client.multiRead([
        { op: 'getData', path: '/a' },
        { op: 'getChildren', path: '/' },
        { op: 'getData', path: '/none' },
      ]),
    )
    expect(data).toMatchObject({ data: bytes('1'), stat: { version: 0 } })
    expect((children as { children: string[] }).children.toSorted()).toEqual(['a', 'zookeeper'])
    expect(missing).toBeInstanceOf(NoNodeError)
  })

  it('syncCommitted commits a transaction without effect', async () => {
    const { stat } = await run(client.create('/a'))
    const zxid = await run(client.syncCommitted())
    expect(zxid).toBe(stat.czxid + 1n)
    await run(client.sync('/'))
  })

  it('getConfig returns the configuration of the ensemble', async () => {
    expect((await run(client.getConfig())).data).toEqual(new Uint8Array(0))
    await expect(run(client.reconfig({ joining: 'server.1=a:1:2' }))).rejects.toMatchObject({
      scope: 'request',
      operation: 'reconfig',
    })
  })
})

describe('errors', () => {
  it('an error has the class, the code and the scope of the error table', async () => {
    await run(client.create('/a'))
    await run(client.create('/a/b'))
    await run(client.create('/e', { mode: 'ephemeral' }))
    await expect(run(client.getData('/none'))).rejects.toThrow(NoNodeError)
    await expect(run(client.create('/a'))).rejects.toThrow(NodeExistsError)
    await expect(run(client.setData('/a', bytes(''), { version: 7 }))).rejects.toThrow(BadVersionError)
    await expect(run(client.delete('/a'))).rejects.toThrow(NotEmptyError)
    await expect(run(client.create('/e/x'))).rejects.toThrow(NoChildrenForEphemeralsError)
    await expect(run(client.create('/no/parent'))).rejects.toMatchObject({
      name: 'NoNodeError',
      code: 'NO_NODE',
      wireCode: -101,
      retryable: false,
      scope: 'request',
      maybeApplied: false,
      path: '/no/parent',
      operation: 'create',
    })
  })

  it('instanceof recognises errors of another copy of the package', async () => {
    const foreign = Object.assign(new Error('x'), {
      [Symbol.for('zabra.error')]: ['NoNodeError', 'ZooKeeperError'],
    })
    expect(foreign).toBeInstanceOf(NoNodeError)
    expect(foreign).toBeInstanceOf(ZooKeeperError)
    expect(foreign).not.toBeInstanceOf(NodeExistsError)
    class Own extends NoNodeError {}
    expect(foreign).not.toBeInstanceOf(Own)
    expect(new Own('x', 'NO_NODE')).toBeInstanceOf(Own)
    expect(new Own('x', 'NO_NODE')).toBeInstanceOf(NoNodeError)
  })

  it.each(['', 'a', '/a/', '//', '/a//b', '/.', '/a/..', '/a\u0000', '/\u007f', '/\ud800'])(
    'the path %j is rejected with a UsageError before anything is sent',
    async (path) => {
      await expect(client.getData(path)).rejects.toThrow(UsageError)
    },
  )

  it('invalid arguments are rejected with a UsageError', async () => {
    await expect(client.create('/')).rejects.toThrow('Expected a path below the root')
    // @ts-expect-error also rejected without types
    await expect(client.create('/t', { mode: 'persistentWithTtl' })).rejects.toThrow('Expected ttlMs')
    // @ts-expect-error also rejected without types
    await expect(client.create('/t', { ttlMs: 5 })).rejects.toThrow('Expected ttlMs only')
    await expect(client.create('/t', { mode: 'odd' as never })).rejects.toThrow(/Expected option mode to be/)
    await expect(client.delete('/t', { recursive: true, version: 1 } as never)).rejects.toThrow('got version')
    await expect(client.watch('/t', { buffer: 0 })).rejects.toThrow('Expected option buffer')
    await expect(client.watchOnce('/t', 'odd' as never)).rejects.toThrow('Expected the kind')
    await expect(client.multi([{ op: 'odd' as never, path: '/' }])).rejects.toThrow(
      'Expected op of operation 0',
    )
    await expect(client.multi([{ op: 'getData' as never, path: '/' }])).rejects.toThrow(
      'Expected op of operation 0 among create, delete, check, setData, got "getData"',
    )
    await expect(client.multiRead([{ op: 'check' as never, path: '/' }])).rejects.toThrow(
      'Expected op of operation 0 among getData, getChildren, got "check"',
    )
    await expect(client.updateServerList('b/other')).rejects.toThrow('Expected a list with the chroot')
  })

  it('a request that is too long for the server is rejected, and the connection stays open', async () => {
    await expect(client.create('/big', { data: new Uint8Array(1024 * 1024) })).rejects.toThrow(
      /Expected a request of at most 1047552 bytes, got 1048627/,
    )
    await run(client.create('/small'))
  })

  it('a closed client rejects every call, and close may be called twice', async () => {
    await run(client.close())
    await run(client.close())
    await expect(client.getData('/')).rejects.toThrow(ClosedError)
    await expect(client.addAuth('digest', bytes('a:b'))).rejects.toThrow(ClosedError)
    expect(client.state).toBe('closed')
    expect(await client.closed).toBeUndefined()
  })
})

describe('trees', () => {
  it('a create with parents makes them as containers or as persistent znodes', async () => {
    await run(client.create('/a/b/c', { data: bytes('x'), parents: true }))
    await run(client.create('/p/q', { parents: 'persistent' }))
    await run(client.createMissing(['/a/b/d/e']))
    await run(client.createMissing(['/a/b/d/e']))
    expect((await run(client.getChildren('/a/b'))).children.toSorted()).toEqual(['c', 'd'])
    // The server removes only containers after their last child.
    await run(Promise.all([client.delete('/a/b', { recursive: true }), client.delete('/p/q')]))
    await world.advance(120_000)
    expect(await run(client.exists('/a'))).toBeUndefined()
    expect(await run(client.exists('/p'))).toBeDefined()
  })

  it('a client walks a tree and deletes it', async () => {
    await run(client.createMissing(['/a/b/c']))
    await run(client.createMissing(['/a/d']))
    const paths = world.collect(client.walk('/a'))
    await world.settle()
    expect(paths).toEqual(['/a', '/a/b', '/a/b/c', '/a/d'])
    await run(client.delete('/a', { recursive: true }))
    expect(await run(client.exists('/a'))).toBeUndefined()
    await expect(run(client.delete('/a', { recursive: true }))).rejects.toThrow(NoNodeError)
    await run(client.delete('/a', { recursive: true, missingOk: true }))
    await run(client.delete('/a', { missingOk: true }))
  })

  it('a recursive delete of / leaves /zookeeper', async () => {
    await run(client.createMissing(['/a/b']))
    await run(client.delete('/', { recursive: true }))
    expect((await run(client.getChildren('/'))).children).toEqual(['zookeeper'])
  })

  it('a setData with createIfMissing creates a missing znode', async () => {
    await run(client.setData('/a/b', bytes('1'), { createIfMissing: true }))
    await run(client.setData('/a/b', bytes('2'), { createIfMissing: true }))
    expect(text((await run(client.getData('/a/b'))).data)).toBe('2')
  })
})

describe('typed values', () => {
  it('a typed client reads, writes and updates values through a codec', async () => {
    const { json } = await import('./codecs.ts')
    const numbers = client.withCodec(json<{ n: number }>())
    await run(numbers.create('/n', { n: 1 }))
    await run(numbers.set('/n', { n: 2 }))
    expect((await run(numbers.get('/n'))).value).toEqual({ n: 2 })
    const changes = Array.from({ length: 5 }, () => numbers.update('/n', ({ n }) => ({ n: n + 1 })))
    await world.within(10_000, Promise.all(changes))
    expect((await run(numbers.get('/n'))).value).toEqual({ n: 7 })
  })

  it('a typed client rejects values that fail the schema, on write and on read', async () => {
    const { json, utf8 } = await import('./codecs.ts')
    const positive = json((value) => {
      if (!(typeof value === 'number' && value > 0)) throw new TypeError('Expected a positive number')
      return value
    })
    const typed = client.withCodec(positive)
    await expect(typed.create('/n', -1)).rejects.toThrow('Expected a positive number')
    await run(client.create('/n', { data: bytes('-1') }))
    await expect(run(typed.get('/n'))).rejects.toThrow('Expected a positive number')
    expect(() => utf8.decode(Uint8Array.of(0xff))).toThrow(TypeError)
  })
})

describe('a chroot', () => {
  const roots = ['/a', '/a/b', '/zoo', '/zookeeper', '/zookeeper/config'] as const

  it.each(roots)('the chroot given as %s maps the paths of every call, result and event', async (root) => {
    const chrootClient = await world.client({ servers: `a:2181${root}`, createChroot: true })
    const all = await world.client()
    // Only the server may write below the configuration.
    for (const one of [chrootClient, all]) await run(one.addAuth('digest', bytes('super:secret')))
    expect((await run(chrootClient.create('/x', { data: bytes('1') }))).path).toBe('/x')
    expect(await run(all.exists(`${root}/x`))).toBeDefined()
    expect(text((await run(chrootClient.getData('/x'))).data)).toBe('1')
    expect((await run(chrootClient.getChildren('/'))).children).toContain('x')
    await run(chrootClient.sync('/x'))
    const [created] = await run(
      chrootClient.multi([{ op: 'create', path: '/y-', mode: 'ephemeralSequential' }]),
    )
    expect(created.path).toMatch(/^\/y-\d{10}$/)
    expect(await run(chrootClient.getEphemerals())).toEqual([created.path])
    const watcher = await run(chrootClient.watch('/', { mode: 'persistentRecursive' }))
    const once = await run(chrootClient.watchOnce('/x', 'data'))
    const events = world.collect(watcher)
    await run(all.setData(`${root}/x`, bytes('2')))
    expect(await run(once.fired)).toMatchObject({ type: 'nodeDataChanged', path: '/x' })
    expect(events).toMatchObject([{ type: 'nodeDataChanged', path: '/x' }])
    await expect(run(chrootClient.create('/x'))).rejects.toMatchObject({ code: 'NODE_EXISTS', path: '/x' })
    expect((await run(chrootClient.getConfig())).stat).toBeDefined()
    await run(chrootClient.delete('/x'))
  })

  it('a missing chroot is named in the error, and createChroot creates it', async () => {
    const chrootClient = await world.client({ servers: 'a:2181/no/where' })
    await expect(run(chrootClient.create('/x'))).rejects.toThrow(NoChrootError)
    await run(chrootClient.createMissing(['/']))
    await run(chrootClient.create('/x'))
    await expect(run(chrootClient.create('/deep/x'))).rejects.not.toThrow(NoChrootError)
  })

  it('getEphemerals leaves out paths that only begin with the name of the chroot', async () => {
    await run(client.createMissing(['/app']))
    const chrootClient = client.chroot('/app')
    await run(client.create('/apple', { mode: 'ephemeral' }))
    await run(chrootClient.create('/e', { mode: 'ephemeral' }))
    expect(await run(chrootClient.getEphemerals('/'))).toEqual(['/e'])
  })

  it('closing a chroot client leaves the session and the watches of other clients open', async () => {
    await run(client.createMissing(['/app']))
    const chrootClient = client.chroot('/app')
    const own = await run(client.watch('/app', { mode: 'persistentRecursive' }))
    const its = await run(chrootClient.watch('/', { mode: 'persistentRecursive' }))
    const events = world.collect(own)
    const gone = world.collect(its)
    await run(chrootClient.close())
    await expect(chrootClient.getData('/')).rejects.toThrow('This client is closed')
    await run(client.create('/app/x'))
    await world.settle()
    expect(events).toMatchObject([{ type: 'nodeCreated', path: '/app/x' }])
    expect(gone).toEqual([])
    expect(client.state).toBe('connected')
  })
})

it.each(['closing', 'closed'])(
  'a %s client takes no list of servers and gives no session away',
  async (state) => {
    const own = await world.client()
    const closed = own.close()
    if (state === 'closed') await run(closed)
    await expect(run(own.updateServerList('b:2181'))).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(run(own.detach())).rejects.toMatchObject({ code: 'CLOSED' })
    await run(closed)
  },
)
