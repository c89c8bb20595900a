import { OpCode, OPEN_ACL_UNSAFE, writeMultiRequest } from '@zabra/protocol'
import { holdWrites } from '@zabra/testkit'
import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import type { ServerSettings } from '../settings/index.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import type { SlowRequest } from './slow-requests.ts'

let server: TestServer

const start = async (settings: Partial<ServerSettings> = {}): Promise<void> => {
  server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'], ...settings })
}

afterEach(() => server?.stop())

const slow = async (): Promise<SlowRequest[]> => {
  const { text } = await server.http.request('/api/v1/slow', { from: '127.0.0.1' })
  return (JSON.parse(text) as { requests: SlowRequest[] }).requests
}

const slowLines = () => server.logLines.filter(({ sentence }) => sentence === 'A request was slow')

const idOf = (client: { session: { sessionId: bigint } | undefined }): string =>
  `0x${client.session!.sessionId.toString(16)}`

/** Makes the requests that `send` sends wait for the disk, where they wait for it. */
const onSlowDisk = async (send: () => void, ms = 300): Promise<void> => {
  const unblock = server.blockDisk()
  send()
  await server.advance(ms)
  unblock()
  await server.untilIdle()
}

const createAll = (client: RawClient, paths: readonly string[]): void =>
  client.ask(1, OpCode.multi, (w) => {
    const rest = { type: OpCode.create, data: null, acl: OPEN_ACL_UNSAFE, flags: 0 }
    writeMultiRequest(
      w,
      paths.map((path) => ({ ...rest, path })),
    )
  })

describe('slow requests', () => {
  it('are kept and logged with their stages, and quick ones are not', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    client.create(1, '/quick')
    await server.untilIdle()
    await onSlowDisk(() => client.create(2, '/slow'))
    const requests = await slow()
    expect(requests).toMatchObject([
      { op: 'CREA', path: '/slow', result: 'ok', session: idOf(client), users: ['127.0.0.1'], tookMs: 300 },
    ])
    // A slow disk is seen as such.
    expect(requests[0]!.stages).toEqual({
      queue: 0,
      prepare: 0,
      proposal: 0,
      sync: 300,
      commit: 0,
      apply: 0,
      reply: 0,
    })
    expect(slowLines()).toHaveLength(1)
  })

  it('are logged ten times a second, and the last 512 are kept', async () => {
    await start({ slowRequestMs: 1 })
    const client = await server.connect()
    await onSlowDisk(() => {
      for (let i = 0; i < 600; i++) client.create(i, `/n${i}`)
    }, 100)
    const requests = await slow()
    expect(requests).toHaveLength(512)
    expect(requests[0]!.path).toBe('/n599')
    expect(slowLines()).toHaveLength(10)
  })

  it('are not kept with slow.request.ms=0', async () => {
    await start({ slowRequestMs: 0, slowRequestReadMs: 0 })
    const client = await server.connect()
    await onSlowDisk(() => client.create(1, '/slow'), 10_000)
    expect(await slow()).toEqual([])
  })

  it('say how long the queues were at their arrival, not at their reply', async () => {
    await start({ slowRequestMs: 200 })
    const [client, other] = [await server.connect(), await server.connect()]
    await onSlowDisk(() => {
      for (let i = 0; i < 5; i++) other.create(i, `/other-${i}`)
      client.create(1, '/first')
      client.read(2, OpCode.exists, '/first')
    })
    const [read, write] = await slow()
    expect(write).toMatchObject({ path: '/first', queues: { session: 0, outstanding: 5, transactions: 5 } })
    expect(read).toMatchObject({ path: '/first', queues: { session: 1, outstanding: 6, transactions: 6 } })
  })

  it('count the bytes of the request and of the reply, with their headers', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/slow')
      client.read(2, OpCode.getData, '/slow')
    })
    const [read, write] = await slow()
    // xid, op code, path, watch; and the header of a reply, data, stat.
    expect(read).toMatchObject({ requestBytes: 8 + 9 + 1, replyBytes: 4 + 16 + 4 + 68 })
    expect(write!.requestBytes).toBeGreaterThan(8 + 9)
  })

  it('have the path and the wait of a read, and the epoch and zxid of what it saw', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/slow')
      client.read(2, OpCode.getData, '/slow')
      client.read(3, OpCode.getChildren, '/')
    })
    const [list, read, write] = await slow()
    expect(read).toMatchObject({ op: 'GETD', path: '/slow', tookMs: 300, stages: { queue: 300, reply: 0 } })
    expect(list).toMatchObject({ op: 'GETC', path: '/', stages: { queue: 300, reply: 0 } })
    expect(read!.zxid).toBe(write!.zxid)
    expect([read!.epoch, write!.epoch]).toEqual([0, 0])
  })

  it('have the path and the bytes of a reply that is written over several turns', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    createAll(client, ['/many', ...Array.from({ length: 2100 }, (_, i) => `/many/${i}`)])
    await server.untilIdle()
    await onSlowDisk(() => {
      client.create(4000, '/slow')
      client.read(4001, OpCode.getChildren, '/many')
    })
    expect((await slow())[0]).toMatchObject({
      op: 'GETC',
      path: '/many',
      requestBytes: 8 + 9 + 1,
      queues: { session: 1, outstanding: 1 },
      stages: { queue: 300 },
    })
  })

  it('have the first path of a multi, and the number of its parts', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    await onSlowDisk(() => createAll(client, ['/a', '/b', '/c']))
    expect(await slow()).toMatchObject([{ op: 'MULT', path: '/a', parts: 3 }])
  })

  it('have no path where the request has none', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/slow')
      client.ask(-8, OpCode.setWatches, (w) => {
        w.longNumber(0)
        for (let i = 0; i < 3; i++) w.int(0)
      })
    })
    const [watches] = await slow()
    expect(watches).toMatchObject({ op: 'SETW', stages: { queue: 300 } })
    expect(watches).not.toHaveProperty('path')
  })

  it('keep a long path cut', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    const path = `/${'x'.repeat(10_000)}`
    await onSlowDisk(() => {
      client.create(1, path)
      client.read(2, OpCode.exists, path)
    })
    expect((await slow()).map(({ path }) => path!.length)).toEqual([512, 512])
  })

  it('know their arrival although they wait before they are started', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/one')
      client.sync(2)
      client.create(3, '/two')
    })
    expect((await slow()).map(({ op, queues, requestBytes }) => [op, queues.session, requestBytes])).toEqual([
      ['CREA', 2, expect.any(Number)],
      ['SYNC', 1, 8 + 5],
      ['CREA', 0, expect.any(Number)],
    ])
  })

  it('name eight users of a client at most', async () => {
    await start({ slowRequestMs: 200 })
    const client = await server.connect()
    for (let user = 0; user < 12; user++)
      client.ask(-4, OpCode.auth, (w) => {
        w.int(0)
        w.string('digest')
        w.buffer(new TextEncoder().encode(`user-${user}-${'x'.repeat(1000)}:secret`))
      })
    await server.untilIdle()
    await onSlowDisk(() => client.create(1, '/slow'))
    const [{ users }] = (await slow()) as [SlowRequest]
    expect(users.map(({ length }) => length)).toEqual([9, ...Array<number>(7).fill(512)])
  })

  it('have a limit of their own where they are reads', async () => {
    await start({ slowRequestMs: 200, slowRequestReadMs: 50 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/one')
      client.read(2, OpCode.exists, '/one')
    }, 100)
    expect(await slow()).toMatchObject([{ op: 'EXIS', tookMs: 100 }])
  })

  it('are writes and syncs only with slow.request.readMs=0', async () => {
    await start({ slowRequestMs: 200, slowRequestReadMs: 0 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/one')
      client.read(2, OpCode.exists, '/one')
      client.sync(3, '/one')
    })
    const requests = await slow()
    expect(requests.map(({ op }) => op)).toEqual(['SYNC', 'CREA'])
    expect(requests[0]).toMatchObject({ path: '/one', stages: { commit: 300, reply: 0 } })
  })

  it('are reads only with slow.request.ms=0', async () => {
    await start({ slowRequestMs: 0, slowRequestReadMs: 50 })
    const client = await server.connect()
    await onSlowDisk(() => {
      client.create(1, '/one')
      client.read(2, OpCode.exists, '/one')
    })
    expect((await slow()).map(({ op }) => op)).toEqual(['EXIS'])
  })
})

it('a slow request of a follower has the epoch, and the queues of that follower', async () => {
  const ensemble = await Ensemble.start(3, { slowRequestMs: 100, adminRoleOperate: ['ip:127.0.0.1'] })
  const id = [1, 2, 3].find((member) => member !== ensemble.leader)!
  const client = await ensemble.client(id)
  const release = [1, 2, 3].map((member) => holdWrites(ensemble.member(member).disk))
  client.create(1, '/one')
  client.read(2, OpCode.exists, '/one')
  client.create(3, '/two')
  await ensemble.advance(200)
  for (const end of release) end()
  await ensemble.until('the replies', () => client.frames.length === 3)
  const { text } = await ensemble.member(id).http.request('/api/v1/slow', { from: '127.0.0.1' })
  const { requests } = JSON.parse(text) as { requests: SlowRequest[] }
  expect(requests).toMatchObject([
    { op: 'CREA', path: '/two', epoch: 1, queues: { session: 2, outstanding: 1 } },
    { op: 'EXIS', path: '/one', epoch: 1, queues: { session: 1, outstanding: 1 } },
    { op: 'CREA', path: '/one', epoch: 1, queues: { session: 0, outstanding: 0 } },
  ])
})
