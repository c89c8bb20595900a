import type { ConnectOptions } from '../connect.ts'
import type { Client } from '../client-api.ts'
import type { ConnectionState, WatchedEvent } from '../types.ts'

/** The servers of a scenario, and the faults it can inject. */
export interface ScenarioContext {
  /** Connects a client. */
  readonly connect: (options?: Partial<ConnectOptions>) => Promise<Client>
  /** Breaks every connection of every client. */
  readonly cut: () => void
  /** Makes all servers unreachable until the returned function is called. */
  readonly isolate: () => () => void
  /** Kills the server that clients are connected to, and restarts it. */
  readonly crash: () => Promise<void>
  /** Suspends the process of the server that clients are connected to, until the returned function is called. */
  readonly pause: () => () => void
  /** Timeout in milliseconds of a session that is to expire soon. */
  readonly shortSession: number
}

export interface Scenario {
  readonly name: string
  readonly run: (context: ScenarioContext) => Promise<void>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const bytes = (text: string): Uint8Array => encoder.encode(text)

function expect(condition: boolean, what: string): void {
  if (!condition) throw new Error(`Expected ${what}`)
}
function equal(found: unknown, wanted: unknown, what: string): void {
  const [a, b] = [found, wanted].map((value) =>
    JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? `${item}n` : item)),
  )
  if (a !== b) throw new Error(`Expected ${what} to be ${b}, got ${a}`)
}

async function reach(client: Client, state: ConnectionState, epoch = 0): Promise<void> {
  for await (const change of client.states()) {
    if (change.state === state && change.sessionGeneration >= epoch) return
  }
  throw new Error(`Expected the client to reach ${state}, it ended`)
}

async function take(events: AsyncIterator<WatchedEvent>, count: number): Promise<string[]> {
  const words: string[] = []
  for (let i = 0; i < count; i++) {
    const { value } = await events.next()
    const event = value as WatchedEvent
    words.push('path' in event ? `${event.type} ${event.path}` : `resync ${event.reason}`)
  }
  return words
}

async function code(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'done'
  } catch (error) {
    return (error as { code: string }).code
  }
}

/**
 * Scenarios that run on the simulated network, on Zabra and on Apache ZooKeeper, also with clients on different
 * members of an ensemble; therefore a client calls `sync` before it reads what another session wrote.
 */
export const scenarios: readonly Scenario[] = [
  {
    name: 'a client runs every operation and gets the errors of each',
    async run({ connect }) {
      await using client = await connect()
      await client.create('/s1', { data: bytes('one') })
      equal(await code(client.create('/s1')), 'NODE_EXISTS', 'a second create')
      equal(await code(client.create('/none/x')), 'NO_NODE', 'a create without a parent')
      const { data, stat } = await client.getData('/s1')
      equal(decoder.decode(data), 'one', 'the data')
      equal(await code(client.setData('/s1', bytes(''), { version: 9 })), 'BAD_VERSION', 'a wrong version')
      const written = await client.setData('/s1', bytes('two'), { version: stat.version })
      equal(written.version, 1, 'the version')
      await client.create('/s1/child')
      equal(await code(client.delete('/s1')), 'NOT_EMPTY', 'the deletion of a parent')
      equal((await client.getChildren('/s1')).children, ['child'], 'the children')
      equal(await client.getAllChildrenNumber('/s1'), 1, 'the count of children')
      const { path } = await client.create('/s1/e-', {
        data: bytes(''),
        mode: 'ephemeralSequential',
        protected: false,
      })
      equal(path, '/s1/e-0000000001', 'the name of a sequential node')
      equal(await client.getEphemerals('/s1'), [path], 'the ephemeral nodes')
      equal(
        await code(client.create(`${path}/x`)),
        'NO_CHILDREN_FOR_EPHEMERALS',
        'a child of an ephemeral node',
      )
      // Before other writes: a leader of Apache ZooKeeper checks writes by the old list until it has applied the new one itself,
      // which may be after its follower has replied.
      await client.setACL('/s1/child', [{ perms: 1, scheme: 'world', id: 'anyone' }])
      await client.create('/s1/container', { mode: 'container' })
      equal((await client.getACL('/s1')).acl, [{ perms: 31, scheme: 'world', id: 'anyone' }], 'the list')
      await client.sync('/s1')
      expect((await client.syncCommitted()) > stat.czxid, 'a newer zxid of syncCommitted')
      equal(await code(client.setData('/s1/child', bytes('x'))), 'NO_AUTH', 'a write without permission')
      equal(
        (await client.whoAmI()).map(({ scheme }) => scheme),
        ['ip'],
        'the identities',
      )
      await client.delete('/s1', { recursive: true })
      equal(await client.exists('/s1'), undefined, 'the remaining znode')
    },
  },
  {
    name: 'a multi is applied as a whole or not at all',
    async run({ connect }) {
      await using client = await connect()
      const [made, changed] = await client.multi([
        { op: 'create', path: '/s2', data: bytes('a') },
        { op: 'setData', path: '/s2', data: bytes('b') },
        { op: 'check', path: '/s2', version: 1 },
      ])
      equal([made.path, changed.version], ['/s2', 1], 'the results')
      const failed = client.multi([
        { op: 'delete', path: '/s2' },
        { op: 'check', path: '/s2-none' },
      ])
      equal(await code(failed), 'MULTI_FAILED', 'a multi with a failed check')
      expect((await client.exists('/s2')) !== undefined, 'the node to exist')
      const [data, none] = await client.multiRead([
        { op: 'getData', path: '/s2' },
        { op: 'getChildren', path: '/s2-none' },
      ])
      expect('data' in data && decoder.decode(data.data) === 'b', 'the data to be read')
      expect('code' in none && none.code === 'NO_NODE', 'the missing node to be an error')
      await client.delete('/s2')
    },
  },
  {
    name: 'a thousand requests in flight keep their order',
    async run({ connect }) {
      await using client = await connect()
      await client.create('/s3', { data: bytes('0') })
      const writes = Array.from({ length: 1000 }, (_, i) => client.setData('/s3', bytes(String(i))))
      const { data, stat } = await client.getData('/s3')
      equal([decoder.decode(data), stat.version], ['999', 1000], 'the data read after the writes')
      const versions = (await Promise.all(writes)).map(({ version }) => version)
      equal(
        versions,
        Array.from({ length: 1000 }, (_, i) => i + 1),
        'the versions',
      )
      await client.delete('/s3')
    },
  },
  {
    name: 'concurrent reads each return their own result, also while connections break',
    async run({ connect, cut }) {
      await using client = await connect()
      await client.create('/s14')
      // All permissions except READ.
      await client.create('/s14/secret', { acl: [{ perms: 30, scheme: 'world', id: 'anyone' }] })
      for (let i = 0; i < 12; i++) {
        await client.create(`/s14/${i}`, { data: i % 4 === 3 ? new Uint8Array(100_000) : bytes(String(i)) })
      }
      const names = Array.from({ length: 300 }, (_, i) => ['none', 'secret'][i % 20] ?? String(i % 12))
      const wanted = names.map((name) => {
        if (name === 'none') return 'NO_NODE'
        if (name === 'secret') return 'NO_AUTH'
        return Number(name) % 4 === 3 ? 100_000 : name
      })
      for (let round = 0; round < 6; round++) {
        const reads = names.map((name) =>
          client.getData(`/s14/${name}`).then(
            ({ data }) => (data.length > 100 ? data.length : decoder.decode(data)),
            (error: { code: string }) => error.code,
          ),
        )
        if (round % 2 === 1) cut()
        equal(await Promise.all(reads), wanted, `the reads of round ${round}`)
      }
      // A write between reads separates them.
      const [, before, , after] = await Promise.all([
        client.getData('/s14/0'),
        client.getData('/s14/0'),
        client.setData('/s14/0', bytes('new')),
        client.getData('/s14/0'),
        client.getData('/s14/0'),
      ])
      equal(
        [before, after].map(({ data }) => decoder.decode(data)),
        ['0', 'new'],
        'the data',
      )
      await client.delete('/s14/secret')
      await client.delete('/s14', { recursive: true })
    },
  },
  {
    name: 'watches fire for changes, in order',
    async run({ connect }) {
      await using client = await connect()
      await using other = await connect()
      const created = await client.watchOnce('/s4', 'exists')
      await other.create('/s4')
      equal((await created.fired).type, 'nodeCreated', 'the event')
      const data = await client.watchOnce('/s4', 'data')
      const children = await client.watchOnce('/s4', 'children')
      // On a path of its own: servers before 3.9 keep one kind of watch for a path and a connection.
      const persistent = await client.watch('/s4/a', { mode: 'persistentRecursive' })
      await other.create('/s4/a')
      await other.setData('/s4', bytes('1'))
      await other.create('/s4/a/b')
      await other.setData('/s4/a/b', bytes('1'))
      await other.delete('/s4/a', { recursive: true })
      equal((await children.fired).type, 'nodeChildrenChanged', 'the event of the children')
      equal((await data.fired).type, 'nodeDataChanged', 'the event of the data')
      equal(
        await take(persistent[Symbol.asyncIterator](), 5),
        [
          'nodeCreated /s4/a',
          'nodeCreated /s4/a/b',
          'nodeDataChanged /s4/a/b',
          'nodeDeleted /s4/a/b',
          'nodeDeleted /s4/a',
        ],
        'the events of the tree',
      )
      await persistent.close()
      await other.delete('/s4')
    },
  },
  {
    name: 'a client keeps its session, watches and identities after a connection loss',
    async run({ connect, cut }) {
      await using client = await connect({ auth: [{ scheme: 'digest', auth: bytes('ann:secret') }] })
      await using other = await connect()
      const { id } = client.session
      const acl = [
        { perms: 31, scheme: 'auth', id: '' },
        { perms: 1, scheme: 'world', id: 'anyone' },
      ]
      await client.create('/s5', { data: bytes('1'), mode: 'ephemeral', acl })
      const persistent = await client.watch('/s5-tree', { mode: 'persistentRecursive' })
      const events = persistent[Symbol.asyncIterator]()
      await other.sync('/s5')
      const once = await other.watchOnce('/s5', 'data')
      for (let i = 0; i < 3; i++) {
        cut()
        const write = client.setData('/s5', bytes(String(i)), { idempotent: true })
        equal(await take(events, 1), ['resync reconnected'], 'the first item after a reconnect')
        await write
      }
      equal(client.session.id, id, 'the session')
      equal((await once.fired).type, 'nodeDataChanged', 'the event of the other client')
      await other.create('/s5-tree')
      equal(await take(events, 1), ['nodeCreated /s5-tree'], 'the event after the reconnects')
      equal((await client.exists('/s5'))?.ephemeralOwner, id, 'the owner')
      await other.delete('/s5-tree')
    },
  },
  {
    name: 'a server crash loses no acknowledged write',
    async run({ connect, crash }) {
      await using client = await connect()
      const { id } = client.session
      await client.create('/s6', { data: bytes('kept') })
      await client.create('/s6/e', { mode: 'ephemeral' })
      await crash()
      equal(decoder.decode((await client.getData('/s6')).data), 'kept', 'the data')
      equal((await client.exists('/s6/e'))?.ephemeralOwner, id, 'the owner of the ephemeral node')
      await client.delete('/s6', { recursive: true })
    },
  },
  {
    name: 'a client leaves a suspended server, or waits for it',
    async run({ connect, pause }) {
      await using client = await connect()
      await client.create('/s7', { data: bytes('1') })
      const resume = pause()
      const read = client.getData('/s7')
      const timer = callAfterQuarterOfSession(resume, client)
      equal(decoder.decode((await read).data), '1', 'the data')
      await timer
      await client.delete('/s7')
    },
  },
  {
    name: 'a client replaces an expired session and reports it',
    async run({ connect, isolate, shortSession }) {
      await using client = await connect({ sessionTimeoutMs: shortSession })
      const old = client.session.id
      await client.create('/s8', { mode: 'ephemeral' })
      const once = await client.watchOnce('/s8', 'data')
      const persistent = await client.watch('/s8-tree')
      const events = persistent[Symbol.asyncIterator]()
      const restore = isolate()
      await reach(client, 'expired')
      restore()
      await reach(client, 'connected', 2)
      equal(client.session.generation, 2, 'the generation')
      expect(client.session.id !== old, 'another session')
      equal(await code(once.fired), 'SESSION_EXPIRED', 'the end of the one-shot watch')
      equal(await take(events, 1), ['resync newSession'], 'the first item of the persistent watch')
      for (let gone = false; !gone;) {
        const watch = await client.watchOnce('/s8', 'exists')
        gone = watch.stat === undefined
        if (!gone) await watch.fired
        await watch.close()
      }
      await persistent.close()
    },
  },
  {
    name: 'a session passes from one client to another',
    async run({ connect }) {
      const first = await connect()
      await first.create('/s9', { mode: 'ephemeral' })
      const session = await first.detach()
      await using second = await connect({ session })
      await second.sync('/s9')
      equal((await second.exists('/s9'))?.ephemeralOwner, session.id, 'the owner')
    },
  },
  {
    name: 'a client with a chroot sees its own part of the tree',
    async run({ connect }) {
      await using client = await connect()
      await using chrootClient = await connect({ chroot: '/s10/deep', createChroot: true })
      equal((await chrootClient.create('/a', { data: bytes('1') })).path, '/a', 'the path')
      await client.sync('/s10')
      expect((await client.exists('/s10/deep/a')) !== undefined, 'the node below the root')
      const other = client.chroot('/s10')
      equal(decoder.decode((await other.getData('/deep/a')).data), '1', 'the data through another chroot')
      await client.delete('/s10', { recursive: true })
    },
  },
  {
    name: 'increments are exact while connections break',
    async run({ connect, cut }) {
      const clients = await Promise.all(Array.from({ length: 3 }, () => connect()))
      await clients[0]!.create('/s11', { data: bytes('0') })
      await Promise.all(clients.map((client) => client.sync('/s11')))
      let breaks = 0
      const work = clients.map(async (client, n) => {
        for (let i = 0; i < 10; i++) {
          // The value contains the writer, which distinguishes a lost reply from a lost race.
          const mine = `${n}:${i}`
          for (let done = false; !done;) {
            const { data, stat } = await client.getData('/s11')
            const [count = '0', who] = decoder.decode(data).split(' ')
            if (who === mine) break
            try {
              await client.setData('/s11', bytes(`${Number(count) + 1} ${mine}`), {
                version: stat.version,
                retry: false,
              })
              done = true
            } catch (error) {
              const { code: reason } = error as { code: string }
              if (reason !== 'BAD_VERSION' && reason !== 'CONNECTION_LOSS') throw error
            }
          }
          if (n === 0 && i % 4 === 1) {
            cut()
            breaks++
          }
        }
      })
      await Promise.all(work)
      await clients[0]!.sync('/s11')
      const [count] = decoder.decode((await clients[0]!.getData('/s11')).data).split(' ')
      expect(
        Number(count) >= 30 && Number(count) <= 30 + breaks * clients.length,
        `30 increments, got ${count}`,
      )
      await clients[0]!.delete('/s11')
      await Promise.all(clients.map((client) => client.close()))
    },
  },
  {
    name: 'a sequential create makes one znode each while connections break',
    async run({ connect, cut }) {
      await using client = await connect()
      await client.create('/s12')
      const paths: string[] = []
      for (let i = 0; i < 20; i++) {
        const creates = [0, 1, 2].map((n) =>
          client.create(`/s12/item-${i}-${n}-`, { mode: 'persistentSequential' }),
        )
        if (i % 5 === 2) cut()
        paths.push(...(await Promise.all(creates)).map(({ path }) => path))
      }
      const { children } = await client.getChildren('/s12')
      equal(children.map((name) => `/s12/${name}`).toSorted(), paths.toSorted(), 'the nodes')
      await client.delete('/s12', { recursive: true })
    },
  },
  {
    name: 'close ends the session at once',
    async run({ connect }) {
      const client = await connect()
      await using other = await connect()
      await client.create('/s13', { mode: 'ephemeral' })
      const gone = await other.watchOnce('/s13', 'exists')
      await client.close()
      if (gone.stat !== undefined) equal((await gone.fired).type, 'nodeDeleted', 'the event')
      await other.sync('/s13')
      equal(await other.exists('/s13'), undefined, 'the node')
    },
  },
]

/** Ends a pause after a quarter of the session timeout, on the clock of the client. */
function callAfterQuarterOfSession(action: () => void, client: Client): Promise<void> {
  return new Promise((resolve) => {
    client.platform.clock.after(client.session.timeoutMs / 4, 'end of a pause', () => {
      action()
      resolve()
    })
  })
}
