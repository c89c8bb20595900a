import {
  CreateMode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Perms,
  WatchMode,
  writeAuthPacket,
  writeCreateRequest,
  writeGetSASLRequest,
  writeMultiHeader,
  writeReconfigRequest,
  writeSetACLRequest,
  type ACL,
  type Writer,
} from '@zabra/protocol'
import { nodeClock, nodeNetwork } from '@zabra/runtime/node'
import { webSocketNetwork } from '@zabra/runtime/ws'
import { freePorts, RawClient } from '@zabra/testkit'
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { busyFlags } from '../busy.ts'
import { openSession } from '../open-session.ts'
import { scaled, withNodeFlags, type Case } from './case.ts'
import { measureChains } from './client-chains.ts'
import { measurePorts } from './port-holds.ts'
import { create, noData, numbered, path, REQUEST_BYTES, watchHolds } from './holds.ts'
import { measureLeftSessions } from './left-sessions.ts'

/** Levels of the deepest path that is changed and watched. */
const LEVELS = 6000
/** Below this number of nodes a list or count is answered in one turn. */
const LISTED_AT_ONCE = 1900
const REQUESTS_AT_ONCE = 5000
/** Connections that send a costly request at the same time; fewer than `maxClientCnxns`. */
const AT_ONCE = 50
/** As many as a connection may have on paths of 17,000 characters. */
const LONG_WATCHES = 3500
/** What rows of lists with long names have in common. */
const LONG_NAMES = 'nodes with names or paths of 10,000 characters'
const IDENTITIES = 99
/** Nodes with access control lists of their own. */
const LISTED = 300
/** What rows of these nodes have in common. */
const OWN_LISTS = `${LISTED} nodes with lists of 1,000 addresses`
/** The session that makes nodes lives on while rows without it take long. */
const PING_MS = 5000
const EPHEMERALS = 100_000

/** Fewer than may be at a handshake at the same time. */
const HANDSHAKES = 240
const KEY_STORE = fileURLToPath(
  new URL('../../../packages/runtime/src/testdata/tls/server.pem', import.meta.url),
)

type Body = (writer: Writer) => void

/** Most parts of a multiRead; one with more is refused before the first is read. */
const MOST_READS = 4096

/** Writes parts of a multi, or of a multiRead, until the request is as large as it may be. */
const parts =
  (type: number, part: (writer: Writer, index: number) => void, most = Infinity): Body =>
  (writer) => {
    const before = writer.length
    for (let index = 0; index < most && writer.length - before < REQUEST_BYTES; index++) {
      writeMultiHeader(writer, { type, done: false, err: -1 })
      part(writer, index)
    }
    writeMultiHeader(writer, { type: -1, done: true, err: -1 })
  }

/** Writes as many strings as fit into a share of the largest request, as a vector. */
function paths(writer: Writer, share: number, name: (index: number) => string): void {
  const mark = writer.length
  writer.int(0)
  let count = 0
  while (writer.length - mark < REQUEST_BYTES * share - 20) writer.string(name(count++))
  writer.intAt(mark, count)
}

/** Writes a setWatches2 with its five lists. */
const watches =
  (name: (index: number) => string): Body =>
  (writer) => {
    writer.long(0n)
    for (let list = 0; list < 5; list++) paths(writer, 0.2, name)
  }

const asAcl = (count: number): ACL[] =>
  Array.from({ length: count }, (_, i) => ({
    perms: Perms.ALL,
    id: { scheme: 'ip', id: `10.${i >> 8}.${i & 255}.0/24` },
  }))

const digest =
  (length: number) =>
  (writer: Writer, index: number): void =>
    writeAuthPacket(writer, {
      type: 0,
      scheme: 'digest',
      auth: new Uint8Array(length).fill(0x41 + (index % 50), index),
    })

/** Sends requests over HTTP. Resolves once all are answered or refused. */
function get(port: number, target: string, headers: Record<string, string> = {}): Promise<void> {
  return new Promise((resolve) => {
    const call = request({ port, host: '127.0.0.1', path: target, headers }, (answer) => {
      answer.resume()
      answer.on('close', resolve)
    })
    call.on('error', () => resolve())
    call.end()
  })
}

/** Resolves to the ClientHello that Node sends. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  for (const one of [client, socket]) one.destroy()
  server.close()
  return hello
}

/** Every kind of request that one client may send and that is large, or small and costly. */
export const clientHolds: Case = {
  name: 'client-holds',
  about: 'the longest event loop hold for each request that is as costly as one client can make it',
  only: 'zabra',
  run: async (context) => {
    const [webSocketPort, adminPort, tlsPort] = (await freePorts(3)) as [number, number, number]
    const peer = await withNodeFlags(context, busyFlags()).start({
      settings: {
        webSocketPort,
        webSocketPortAddress: '127.0.0.1',
        'admin.enableServer': 'true',
        'admin.serverPort': adminPort,
        secureClientPort: tlsPort,
        'ssl.keyStore.location': KEY_STORE,
        'ssl.clientAuth': 'none',
        'sasl.digest.users': 'ada:pass',
        reconfigEnabled: 'true',
      },
    })
    const port = peer.ports[0]!
    const { rows } = context.options
    const isMeasured = (what: string): boolean => rows === undefined || rows.test(what)
    const test = async (what: string, disturbance: () => Promise<unknown>): Promise<void> => {
      if (!isMeasured(what)) return
      const noteHolds = await watchHolds(context, peer, (kind) => `event loop ${kind}: ${what}`)
      // Some are refused, with or without a reply.
      await disturbance().catch(() => {})
      await noteHolds()
    }
    /** Measures one request of a client of its own. */
    const one = async (what: string, type: number, body: Body): Promise<void> => {
      if (!isMeasured(what)) return
      const client = await openSession(port)
      await test(what, () => client.request(type, body))
      client.destroy()
    }
    const many = async (what: string, type: number, body: (writer: Writer, index: number) => void) => {
      const row = `${REQUESTS_AT_ONCE} × ${what}`
      if (!isMeasured(row)) return
      const client = await openSession(port)
      await test(row, () => client.requestMany(REQUESTS_AT_ONCE, type, body))
      client.destroy()
    }
    const makeNode = (
      client: RawClient,
      node: string,
      acl: readonly ACL[] = OPEN_ACL_UNSAFE,
      data = noData,
    ) =>
      client.request(OpCode.create, (w) =>
        writeCreateRequest(w, { path: node, data, acl, flags: CreateMode.PERSISTENT }),
      )
    let alive: NodeJS.Timeout | undefined
    try {
      await test('nothing', async () => {})
      const client = await openSession(port)
      alive = setInterval(() => {
        client.request(OpCode.ping, () => {}).catch(() => clearInterval(alive))
      }, PING_MS)
      for (const folder of ['/m', '/n', '/listed', '/e']) await makeNode(client, folder)
      const makeLarge = () => makeNode(client, '/large', OPEN_ACL_UNSAFE, new Uint8Array(REQUEST_BYTES))
      const firstLarge = 'the first creation of a node with 1 MiB of data'
      await (isMeasured(firstLarge) ? test(firstLarge, makeLarge) : makeLarge())
      await makeNode(client, '/guarded', asAcl(1000))
      await makeNode(client, '/open', [
        { perms: Perms.ADMIN | Perms.READ, id: { scheme: 'world', id: 'anyone' } },
        ...asAcl(999),
      ])
      await client.requestMany(LISTED_AT_ONCE, OpCode.create, create(numbered('/listed')))

      const setData = (writer: Writer, node: string): void => {
        writer.string(node)
        writer.buffer(noData)
        writer.int(-1)
      }
      await one(
        'the largest multi of setData',
        OpCode.multi,
        parts(OpCode.setData, (w) => setData(w, '/m')),
      )
      const short = (index: number): string => `/n/${index.toString(36)}`
      await one(
        'the largest multi of create',
        OpCode.multi,
        parts(OpCode.create, (w, i) => create(short)(w, i)),
      )
      await one('the largest multi of checks that fail at the end', OpCode.multi, (w) => {
        parts(OpCode.check, (v, i) => {
          v.string(i < 49_000 ? '/m' : '/absent')
          v.int(-1)
        })(w)
      })
      await one(
        'the largest multi of delete',
        OpCode.multi,
        parts(OpCode.delete, (w, i) => {
          w.string(short(i))
          w.int(-1)
        }),
      )
      await one('the largest multi of creates and deletes of one node', OpCode.multi, (w) => {
        const before = w.length
        while (w.length - before < REQUEST_BYTES) {
          writeMultiHeader(w, { type: OpCode.create, done: false, err: -1 })
          create(() => '/o')(w, 0)
          writeMultiHeader(w, { type: OpCode.delete, done: false, err: -1 })
          w.string('/o')
          w.int(-1)
        }
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
      await one(
        'the largest multi of setACL with 1,000 entries',
        OpCode.multi,
        parts(OpCode.setACL, (w, i) =>
          writeSetACLRequest(w, { path: '/m', version: -1, acl: asAcl(999 + (i % 2)) }),
        ),
      )
      const readOf =
        (node: string) =>
        (w: Writer): void =>
          path(node, false)(w)
      const reads = (type: number, node: string): Body => parts(type, readOf(node), MOST_READS)
      await one('a multiRead of too many parts', OpCode.multiRead, parts(OpCode.getData, readOf('/x')))
      await one('the largest multiRead of absent nodes', OpCode.multiRead, reads(OpCode.getData, '/x'))
      await one('the largest multiRead of getData', OpCode.multiRead, reads(OpCode.getData, '/m'))
      await one('the largest multiRead of getChildren of /', OpCode.multiRead, reads(OpCode.getChildren, '/'))
      await one(
        'the largest multiRead of large lists',
        OpCode.multiRead,
        reads(OpCode.getChildren, '/listed'),
      )
      await one('the largest multiRead of large data', OpCode.multiRead, reads(OpCode.getData, '/large'))
      const unread = await Promise.all(Array.from({ length: AT_ONCE }, () => openSession(port)))
      await test(`${AT_ONCE} connections that send the largest multiRead of large data at once`, () =>
        Promise.all(
          unread.map((each) =>
            each.request(OpCode.multiRead, (w) => {
              for (let i = 0; i < 7; i++) {
                writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
                readOf('/large')(w)
              }
              writeMultiHeader(w, { type: -1, done: true, err: -1 })
            }),
          ),
        ))
      for (const each of unread) each.destroy()
      await one('the largest multiRead of guarded nodes', OpCode.multiRead, reads(OpCode.getData, '/guarded'))

      await one(
        'setWatches2 of absent nodes',
        OpCode.setWatches2,
        watches((i) => `/w${i}`),
      )
      await one(
        'setWatches2 of existing nodes',
        OpCode.setWatches2,
        watches((i) => numbered('/listed')(i % LISTED_AT_ONCE)),
      )
      await one(
        'setWatches2 of one node',
        OpCode.setWatches2,
        watches(() => '/m'),
      )
      await one(
        'setWatches2 of guarded nodes',
        OpCode.setWatches2,
        watches(() => '/guarded'),
      )
      await one(
        'setWatches2 of deep absent nodes',
        OpCode.setWatches2,
        watches((i) => '/d'.repeat(1000) + i),
      )

      const longest = '/d'.repeat(REQUEST_BYTES / 2 - 50)
      const addWatch = (mode: number) => (node: string) => (w: Writer) => {
        w.string(node)
        w.int(mode)
      }
      await one('exists of the longest path', OpCode.exists, path(longest, true))
      await one('a creation of the longest path', OpCode.create, (w) => create(() => longest)(w, 0))
      const longestName = `/${'n'.repeat(REQUEST_BYTES - 100)}`
      await one('a creation of a node with the longest name', OpCode.create, (w) =>
        create(() => longestName)(w, 0),
      )
      await one('a creation of a node with the longest name, not ASCII', OpCode.create, (w) =>
        create(() => `/${'名'.repeat(REQUEST_BYTES / 3 - 100)}`)(w, 0),
      )
      await one(
        'a recursive watch on the longest path',
        OpCode.addWatch,
        addWatch(WatchMode.PERSISTENT_RECURSIVE)(longest),
      )
      await one('setWatches2 of recursive watches on long paths', OpCode.setWatches2, (w) => {
        w.long(0n)
        for (let list = 0; list < 4; list++) w.int(0)
        paths(w, 1, (i) => '/d'.repeat(10_000) + i)
      })
      await many('exists with a watch, of absent paths of 17,000 characters', OpCode.exists, (w, i) =>
        path(`/${'d'.repeat(17_000)}${10_000 + i}`, true)(w),
      )
      const watching = await openSession(port)
      await watching.requestMany(LONG_WATCHES, OpCode.exists, (w, i) =>
        path(`/${'d'.repeat(17_000)}${10_000 + i}`, true)(w),
      )
      await test(`the end of a connection with ${LONG_WATCHES} such watches`, async () => {
        watching.destroy()
        await new Promise((resolve) => setTimeout(resolve, 500))
      })
      const deepest = '/d'.repeat(LEVELS)
      await client.requestMany(
        LEVELS,
        OpCode.create,
        create((level) => deepest.slice(0, 2 * (1 + level))),
      )
      await many(`addWatch, recursive, at depths up to ${LEVELS}`, OpCode.addWatch, (w, i) =>
        addWatch(WatchMode.PERSISTENT_RECURSIVE)(deepest.slice(0, 2 * (1 + i)))(w),
      )
      const watcher = await openSession(port)
      await watcher.requestMany(REQUESTS_AT_ONCE, OpCode.addWatch, (w, i) =>
        addWatch(WatchMode.PERSISTENT_RECURSIVE)(deepest.slice(0, 2 * (1 + i)))(w),
      )
      await test(`100 writes at ${LEVELS} levels, each of ${REQUESTS_AT_ONCE} watched recursively`, () =>
        client.requestMany(100, OpCode.setData, (w) => setData(w, deepest)))
      await test(`${REQUESTS_AT_ONCE} removeWatches at these levels`, () =>
        watcher.requestMany(REQUESTS_AT_ONCE, OpCode.removeWatches, (w, i) => {
          w.string(deepest.slice(0, 2 * (1 + i)))
          w.int(3)
        }))
      watcher.destroy()
      await many('deep exists with a watch', OpCode.exists, (w, i) =>
        path(deepest.slice(0, 2 * (1 + i)), true)(w),
      )

      await many(
        `getAllChildrenNumber of ${LISTED_AT_ONCE} znodes`,
        OpCode.getAllChildrenNumber,
        path('/listed'),
      )
      await many(`getChildren of ${LISTED_AT_ONCE} znodes`, OpCode.getChildren, path('/listed', false))
      const longName = (folder: string) => (index: number) => `${folder}/${1000 + index}${'n'.repeat(10_000)}`
      const below = longest.slice(0, 10_000)
      if (isMeasured(LONG_NAMES)) {
        const owner = await openSession(port)
        await makeNode(owner, '/named')
        const temporary = create(longName('/named'), CreateMode.EPHEMERAL)
        await owner.requestMany(LISTED_AT_ONCE, OpCode.create, temporary)
        await owner.requestMany(
          LISTED_AT_ONCE,
          OpCode.create,
          create((i) => `${below}/${i}`),
        )
        await test(`getChildren of ${LISTED_AT_ONCE} ${LONG_NAMES}`, () =>
          owner.request(OpCode.getChildren, path('/named', false)))
        await test(`a multiRead of ${LISTED_AT_ONCE} ${LONG_NAMES}`, () =>
          owner.request(OpCode.multiRead, (w) => {
            writeMultiHeader(w, { type: OpCode.getChildren, done: false, err: -1 })
            readOf('/named')(w)
            writeMultiHeader(w, { type: -1, done: true, err: -1 })
          }))
        await test(`getEphemerals of ${LISTED_AT_ONCE} ${LONG_NAMES}`, () =>
          owner.request(OpCode.getEphemerals, path(longName('/named')(0).slice(0, -1))))
        await test(`20 × getAllChildrenNumber of ${LISTED_AT_ONCE} ${LONG_NAMES}`, () =>
          owner.requestMany(20, OpCode.getAllChildrenNumber, path(below)))
        await test(`the end of a session with ${LISTED_AT_ONCE} ephemerals, ${LONG_NAMES}`, () =>
          owner.close())
      }
      const limited = `100 writes at ${LEVELS} levels, half of which have a quota`
      if (isMeasured(limited)) {
        const quotas = `/zookeeper/quota${deepest}`
        const folders = (level: number): string => quotas.slice(0, 18 + 2 * level)
        await client.requestMany(LEVELS, OpCode.create, create(folders))
        await client.requestMany(LEVELS / 2, OpCode.create, (w, i) =>
          writeCreateRequest(w, {
            path: `${folders(2 * i)}/zookeeper_limits`,
            data: new TextEncoder().encode('count=1000000,bytes=-1'),
            acl: OPEN_ACL_UNSAFE,
            flags: 0,
          }),
        )
        await test(limited, () => client.requestMany(100, OpCode.setData, (w) => setData(w, deepest)))
      }
      await many('getData of 1 MiB', OpCode.getData, path('/large', false))
      for (const [count, what, type, body] of [
        [64, 'getData of 1 MiB', OpCode.getData, path('/large', false)],
        [256, `getChildren of ${LISTED_AT_ONCE} znodes`, OpCode.getChildren, path('/listed', false)],
      ] as const) {
        const writing = await openSession(port)
        const write = (): Promise<unknown> => writing.request(OpCode.setData, (w) => setData(w, '/m'))
        await test(`${count} × ${what} between two writes`, () =>
          Promise.all([write(), writing.requestMany(count, type, body), write()]))
        writing.destroy()
      }
      await many('getACL of 1,000 entries', OpCode.getACL, path('/open'))
      await many('setACL of 1,000 entries', OpCode.setACL, (w, i) => {
        writeSetACLRequest(w, {
          path: '/m',
          version: -1,
          acl: i % 50 === 0 ? asAcl(1000) : OPEN_ACL_UNSAFE.slice(),
        })
      })
      await many('sync', OpCode.sync, path('/'))
      await many('ping', OpCode.ping, () => {})

      const known = await openSession(port)
      await test(`${IDENTITIES} credentials`, () => known.requestMany(IDENTITIES, OpCode.auth, digest(120)))
      await test(`${REQUESTS_AT_ONCE} × checks of 1,000 access entries against ${IDENTITIES} identities`, () =>
        known.requestMany(REQUESTS_AT_ONCE, OpCode.getData, path('/guarded', false)))
      await test(`${REQUESTS_AT_ONCE} × whoAmI of ${IDENTITIES} identities`, () =>
        known.requestMany(REQUESTS_AT_ONCE, OpCode.whoAmI, () => {}))
      await test(`the largest multi of creates that name ${IDENTITIES} identities`, () =>
        known.request(
          OpCode.multi,
          parts(OpCode.create, (w, i) =>
            writeCreateRequest(w, {
              path: `/auth${i}`,
              data: noData,
              acl: [{ perms: Perms.ALL, id: { scheme: 'auth', id: '' } }],
              flags: 0,
            }),
          ),
        ))
      known.destroy()
      const guardian = await openSession(port)
      const digests = (count: number, length: number, seed = 0): ACL[] =>
        Array.from({ length: count }, (_, i) => ({
          perms: Perms.ALL,
          id: { scheme: 'digest', id: `${seed}.${i}:${'h'.repeat(length)}` },
        }))
      await makeNode(guardian, '/few', digests(8, 28))
      const identified = `the largest multiRead of checks of 8 access entries against ${IDENTITIES} identities`
      if (isMeasured(identified)) {
        await guardian.requestMany(IDENTITIES, OpCode.auth, digest(120))
        await test(identified, () =>
          guardian.request(OpCode.multiRead, (w) => {
            for (let i = 0; i < MOST_READS; i++) {
              writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
              readOf('/few')(w)
            }
            writeMultiHeader(w, { type: -1, done: true, err: -1 })
          }),
        )
      }
      guardian.destroy()
      if (isMeasured(OWN_LISTS)) {
        const [owner, watching] = [await openSession(port), await openSession(port)]
        for (const folder of ['/own', '/temporary']) await makeNode(owner, folder)
        const guarded = (folder: string, flags: number) => (w: Writer, i: number) =>
          writeCreateRequest(w, {
            path: `${folder}/${i}`,
            data: noData,
            acl: [...asAcl(999), { perms: Perms.ALL, id: { scheme: 'ip', id: `9.9.${i >> 8}.${i & 255}` } }],
            flags,
          })
        await owner.requestMany(LISTED, OpCode.create, guarded('/own', CreateMode.PERSISTENT))
        const own = (i: number): string => `/own/${i % LISTED}`
        await test(`setWatches of 800 paths of ${OWN_LISTS}`, () =>
          watching.request(OpCode.setWatches, (w) => {
            w.long(0n)
            w.int(800)
            for (let i = 0; i < 800; i++) w.string(own(i))
            w.int(0)
            w.int(0)
          }))
        await test(`getData of ${OWN_LISTS}`, () =>
          watching.requestMany(LISTED, OpCode.getData, (w, i) => readOf(own(i))(w)))
        await test(`a multiRead of 3,000 getData of ${OWN_LISTS}`, () =>
          watching.request(OpCode.multiRead, (w) => {
            for (let i = 0; i < 3000; i++) {
              writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
              readOf(own(i))(w)
            }
            writeMultiHeader(w, { type: -1, done: true, err: -1 })
          }))
        await watching.request(OpCode.addWatch, addWatch(WatchMode.PERSISTENT_RECURSIVE)('/temporary'))
        await owner.requestMany(LISTED, OpCode.create, guarded('/temporary', CreateMode.EPHEMERAL))
        await test(`the end of a session with ${OWN_LISTS}, watched`, async () => {
          await owner.close()
          await new Promise((resolve) => setTimeout(resolve, 500))
        })
        watching.destroy()
      }
      const queued = '4 × the largest multiRead of getData between two writes'
      if (isMeasured(queued)) {
        const reading = await openSession(port)
        const write = (): Promise<unknown> => reading.request(OpCode.setData, (w) => setData(w, '/m'))
        const read = (): Promise<unknown> =>
          reading.request(OpCode.multiRead, (w) => {
            for (let i = 0; i < MOST_READS; i++) {
              writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
              readOf('/m')(w)
            }
            writeMultiHeader(w, { type: -1, done: true, err: -1 })
          })
        await test(queued, () => Promise.all([write(), read(), read(), read(), read(), write()]))
        reading.destroy()
      }
      await one('an access control list of 1,000 entries of a thousand characters', OpCode.create, (w) =>
        writeCreateRequest(w, { path: '/wide', data: noData, acl: digests(1000, 1000), flags: 0 }),
      )
      await one('credentials of the largest request', OpCode.auth, (w) => digest(REQUEST_BYTES)(w, 0))
      await one('an access control list of the largest request', OpCode.create, (w) => {
        w.string('/refused')
        w.buffer(noData)
        const count = Math.floor(REQUEST_BYTES / 12)
        w.int(count)
        for (let i = 0; i < count; i++) for (const field of [i, -1, -1]) w.int(field)
        w.int(CreateMode.PERSISTENT)
      })
      for (const [what, letters] of [
        ['commas', ','],
        ['open quotes', 'a="'],
        ['directives', 'a=b,'],
        ['blanks', ' '],
        ['backslashes', '"\\'],
      ] as const)
        await test(`a SASL token of 1 MiB of ${what}`, async () => {
          const mallory = await openSession(port)
          await mallory.request(OpCode.sasl, (w) => writeGetSASLRequest(w, { token: noData }))
          const token = new TextEncoder().encode(letters.repeat(REQUEST_BYTES / letters.length))
          await mallory.request(OpCode.sasl, (w) => writeGetSASLRequest(w, { token }))
        })
      await one('a reconfig of the largest request', OpCode.reconfig, (w) =>
        writeReconfigRequest(w, {
          joiningServers: 'server.1=a:1:1;1,'.repeat(REQUEST_BYTES / 17 - 10),
          leavingServers: null,
          newMembers: null,
          curConfigId: -1n,
        }),
      )

      const ephemerals = scaled(
        context,
        rows === undefined || /ephemerals/i.test(rows.source) ? EPHEMERALS : 0,
      )
      const owner = await openSession(port)
      await owner.requestMany(ephemerals, OpCode.create, create(numbered('/e'), CreateMode.EPHEMERAL))
      await test(`getEphemerals of ${ephemerals}`, () => owner.request(OpCode.getEphemerals, path('/')))
      await test(`getEphemerals of ${ephemerals}, 50 at once`, () =>
        owner.requestMany(50, OpCode.getEphemerals, path('/no')))
      await test(`the end of a session with ${ephemerals} ephemerals`, () => owner.close())

      const frames = webSocketNetwork({ clock: nodeClock })
      const page = await frames.connect({ host: '127.0.0.1', port: webSocketPort })
      const inPage = await RawClient.open(page)
      await test('the largest multiRead over WebSocket', () =>
        inPage.request(OpCode.multiRead, reads(OpCode.getData, '/x')))
      await test('50,000 WebSocket messages of one byte', async () => {
        const other = await frames.connect({ host: '127.0.0.1', port: webSocketPort })
        const closed = new Promise<void>((resolve) =>
          other.setHandler({ data() {}, drain() {}, closed: () => resolve() }),
        )
        for (let i = 0; i < 50_000; i++) other.write(Uint8Array.of(i < 1 ? 1 : 0))
        other.write(new TextEncoder().encode('end of this connection'.repeat(1000)))
        await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 3000))])
        other.destroy()
      })
      inPage.destroy()

      for (const target of [
        '/commands/watches',
        '/commands/dump',
        '/commands/connections',
        '/metrics',
        '/commands',
        '/api/v1/sessions',
        `/${'x'.repeat(15_000)}`,
      ])
        await test(`20 × GET ${target.slice(0, 30)}`, () =>
          Promise.all(Array.from({ length: 20 }, () => get(adminPort, target))))
      await measurePorts(test, { client: port, webSocket: webSocketPort, admin: adminPort })
      const hello = await clientHello()
      await test(`${HANDSHAKES} connections with a ClientHello of TLS at once`, async () => {
        const all = await Promise.all(
          Array.from({ length: HANDSHAKES }, () => nodeNetwork.connect({ host: '127.0.0.1', port: tlsPort })),
        )
        const answered = all.map(
          (connection) =>
            new Promise<void>((resolve) =>
              connection.setHandler({ data: () => resolve(), drain() {}, closed: () => resolve() }),
            ),
        )
        for (const connection of all) connection.write(hello)
        await Promise.race(answered)
        await new Promise((resolve) => setTimeout(resolve, 500))
        for (const connection of all) connection.destroy()
      })
      await test('500 connections at once', async () => {
        const all = await Promise.all(
          Array.from({ length: 500 }, () => nodeNetwork.connect({ host: '127.0.0.1', port })),
        )
        for (const connection of all) connection.destroy()
      })
      client.destroy()
    } finally {
      clearInterval(alive)
      await peer.stop()
    }
    await measureLeftSessions(context)
    await measureChains(context)
  },
}
