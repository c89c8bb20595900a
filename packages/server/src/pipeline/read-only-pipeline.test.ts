import { CreateMode, ErrorCode, OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { LearnerSessions } from '../core/sessions/index.ts'
import { createOf } from '../core/testing/create-of.ts'
import { Tree } from '../core/tree/index.ts'
import { ReadOnlyPipeline } from './read-only-pipeline.ts'
import { PipelineFixture } from './testing/pipeline-fixture.ts'

const fixture = (): Promise<PipelineFixture> =>
  PipelineFixture.open({
    clock: new ManualClock(),
    readOnly: true,
    sessions: new LearnerSessions(new SessionMap([[0x55n, 10_000]])),
    role: { mode: 'read-only' },
    createPipeline: (context) => new ReadOnlyPipeline(context),
  })

describe('a read-only server', () => {
  it('accepts only clients that allow read-only servers', async () => {
    const server = await fixture()
    const [writer, reader] = [await server.client({}), await server.client({ readOnly: true })]
    await server.untilIdle()
    expect([writer.closed, writer.frames.length]).toEqual([true, 0])
    expect(reader.takeConnectResponse()).toMatchObject({ timeOut: 10_000, readOnly: true })
    expect(reader.session!.sessionId).not.toBe(0n)
  })

  it('replies to reads and rejects all other requests, in the order of the session', async () => {
    const server = await fixture()
    const client = await server.connect({ readOnly: true })
    client.read(1, OpCode.getData, '/', true)
    client.create(2, '/a')
    client.create(3, '/e', CreateMode.EPHEMERAL)
    client.set(4, '/', 'x')
    client.ask(5, OpCode.delete)
    client.ask(6, OpCode.multi)
    client.sync(7)
    client.ask(8, OpCode.reconfig)
    client.ask(9, OpCode.setACL)
    client.read(10, OpCode.exists, '/a')
    client.ask(-2, OpCode.ping)
    client.ask(11, OpCode.closeSession)
    await server.untilIdle()
    const refused = [2, 3, 4, 5, 6, 7, 8, 9].map((xid) => `${xid}:${ErrorCode.NOTREADONLY}`)
    expect(client.takeReceived()).toEqual(['1:0', ...refused, `10:${ErrorCode.NONODE}`, '-2:0', '11:0'])
    expect(client.closed).toBe(true)
    expect(server.clientService.localSessions!.size).toBe(0)
    expect(server.tree.lastZxid).toBe(0)
  })

  it('resumes its local sessions, and closes connections with other sessions without a reply', async () => {
    const server = await fixture()
    const client = await server.client({ readOnly: true })
    await server.untilIdle()
    const session = client.takeConnectResponse()!
    const again = await server.client({ readOnly: true, resume: session })
    const global = await server.client({ readOnly: true, resume: { ...session, sessionId: 0x55n } })
    const unknown = await server.client({ readOnly: true, resume: { ...session, sessionId: 0x66n } })
    await server.untilIdle()
    expect([again.takeConnectResponse()?.sessionId, client.closed]).toEqual([session.sessionId, true])
    for (const one of [global, unknown]) expect([one.closed, one.frames.length]).toEqual([true, 0])
  })

  it('expires its local sessions', async () => {
    const server = await fixture()
    const client = await server.connect({ readOnly: true, timeout: 4000 })
    server.clock.advance(5100)
    server.clientService.runTurn(() => server.clientService.expiry.run())
    await server.untilIdle()
    expect([client.closed, server.clientService.localSessions!.size]).toEqual([true, 0])
  })

  it('reports its role in four-letter commands', async () => {
    const server = await fixture()
    expect(await server.command('isro')).toBe('ro')
    expect(await server.command('srvr')).toMatch(
      /^Zookeeper version: .*\nREAD-ONLY mode; serving only read-only clients\nLatency (.*\n)*Mode: read-only\nNode count: 5\n$/,
    )
    expect(await server.command('dump')).toContain('Global Sessions(1):\n0x55\t10000ms\n')
    expect(await server.command('mntr')).toContain('zk_server_state\tread-only\n')
  })
})

describe('the pipeline of a read-only server', () => {
  const given = () => {
    const tree = new Tree({ digest: false, extendedTypes: false })
    return { tree, pipeline: new ReadOnlyPipeline({ tree }) }
  }

  it('has nothing in flight, and answers pings', () => {
    const { pipeline } = given()
    expect([pipeline.outstanding, pipeline.queues, pipeline.digests]).toEqual([0, {}, []])
    expect(pipeline.canAnswerPing()).toBe(true)
    pipeline.end()
  })

  it('shows what its tree holds', () => {
    const { tree, pipeline } = given()
    expect(pipeline.lastVisibleZxid).toBe(0)
    const parts = { data: new Uint8Array(0), parentCVersion: 1 }
    tree.apply({ sessionId: 1n, cxid: 1, zxid: 0x1_0000_0007, time: 1 }, createOf('/a', parts))
    expect(pipeline.lastVisibleZxid).toBe(0x1_0000_0007)
  })

  it('refuses writes and syncs', () => {
    const { pipeline } = given()
    expect(pipeline.isWritable).toBe(false)
    expect(pipeline.write()).toBe(ErrorCode.NOTREADONLY)
    const write = {} as Parameters<typeof pipeline.sync>[0]
    const callback = {} as Parameters<typeof pipeline.sync>[1]
    expect(pipeline.sync(write, callback)).toBe(ErrorCode.NOTREADONLY)
  })

  it('leaves sessions local, and revalidates no global one', () => {
    const { pipeline } = given()
    expect([pipeline.createSession(), pipeline.closeSession()]).toEqual([false, false])
    const answers: boolean[] = []
    pipeline.revalidate(0x55n, 10_000, {
      onRevalidated: (isAlive) => void answers.push(isAlive),
      onRefused() {},
    })
    expect(answers).toEqual([false])
  })
})
