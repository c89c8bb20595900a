import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Perms,
  Reader,
  writeCreateRequest,
  Writer,
  writeSetACLRequest,
  type ACL,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { isLargeRequest } from './proposer.ts'
import { createBody, leaderFixture, SESSION } from './testing/leader-fixture.ts'

/** A session that server 1 has opened. */
const LOCAL = (1n << 56n) + 5n
const UNDECODABLE = new Uint8Array([0, 0, 0, 9])

describe('Proposer', () => {
  it('returns the error of a write that cannot be decoded, which takes no zxid', async () => {
    const { write, proposed, pipeline } = await leaderFixture()
    const err = write(1, OpCode.setData, UNDECODABLE)
    expect([err, proposed, pipeline.proposer.lastZxid]).toEqual([ErrorCode.MARSHALLINGERROR, [], 0])
  })

  it('answers a write that waited and cannot be decoded by an error transaction', async () => {
    const { write, writeLarge, proposed, settle } = await leaderFixture()
    expect([writeLarge(1), write(2, OpCode.setData, UNDECODABLE)]).toEqual([0, 0])
    await settle()
    expect(proposed.map(({ header, txn }) => [header.cxid, txn.type, 'err' in txn && txn.err])).toEqual([
      [1, OpCode.multi, false],
      [2, OpCode.error, ErrorCode.MARSHALLINGERROR],
    ])
  })

  it('gives a transaction the time of the wall clock at which its preparation begins, in whole milliseconds', async () => {
    const { write, proposed, clock } = await leaderFixture()
    clock.advance(1500.75)
    write(1, OpCode.create, createBody('/a'))
    expect(proposed[0]!.header.time).toBe(Math.floor(clock.wall()))
  })

  it('records when the preparation of each 32nd transaction begins', async () => {
    const { write, clock, clientService } = await leaderFixture()
    const begun: number[][] = []
    const { stages } = clientService.stats
    stages.begun = (zxid, at) => void begun.push([zxid, at])
    clock.advance(5)
    for (let i = 1; i <= 64; i++) write(i, OpCode.create, createBody(`/${i}`))
    expect(begun).toEqual([
      [32, clock.monotonic()],
      [64, clock.monotonic()],
    ])
  })

  it('knows the size of its last proposal, and none before the first', async () => {
    const { write, pipeline, log } = await leaderFixture()
    const { proposer } = pipeline
    expect(proposer.lastSize).toBe(-1)
    write(1, OpCode.create, createBody('/a'))
    write(2, OpCode.create, createBody('/longer'))
    expect([proposer.lastSize, proposer.sizes.max, proposer.sizes.min]).toEqual([
      log.payloads[1]!.length,
      log.payloads[1]!.length,
      log.payloads[0]!.length,
    ])
  })

  it('appends transactions that are not encoded where no other server gets them', async () => {
    const { write, writeLarge, pipeline, log, settle } = await leaderFixture({ sendsPayloads: false })
    write(1, OpCode.create, createBody('/a'))
    expect([log.appended.map(({ txn }) => txn.type), log.payloads.length]).toEqual([[OpCode.create], 0])
    expect([pipeline.proposer.lastSize, pipeline.proposer.sizes.totalCount]).toEqual([-1, 0])
    writeLarge(2)
    await settle()
    // It was encoded in steps.
    expect([log.appended.length, log.payloads.length]).toEqual([1, 1])
  })

  it('takes a multi for large from 8,193 bytes on, and other requests from 64 KiB of a path or access control list on', () => {
    const body = (length: number) => new Reader(new Uint8Array(length))
    const long: ACL[] = [{ perms: Perms.ALL, id: { scheme: 'digest', id: `u:${'h'.repeat(65_600)}` } }]
    const [path, flags, data, acl] = ['/a', 0, new Uint8Array(100_000), OPEN_ACL_UNSAFE]
    const requestOf = (write: (w: Writer) => void): Reader => {
      const w = new Writer()
      write(w)
      return new Reader(w.take())
    }
    expect([
      isLargeRequest(OpCode.multi, body(8192)),
      isLargeRequest(OpCode.multi, body(8193)),
      isLargeRequest(
        OpCode.create,
        requestOf((w) => writeCreateRequest(w, { path, data, acl, flags })),
      ),
      isLargeRequest(
        OpCode.create2,
        requestOf((w) => writeCreateRequest(w, { path, data: null, acl: long, flags })),
      ),
      isLargeRequest(
        OpCode.setACL,
        requestOf((w) => writeSetACLRequest(w, { path, acl: long, version: -1 })),
      ),
      isLargeRequest(OpCode.create, new Reader(new Uint8Array(100_000).fill(0xff))),
      isLargeRequest(OpCode.create, new Reader(createBody(`/${'n'.repeat(65_535)}`))),
      isLargeRequest(OpCode.create, new Reader(createBody(`/${'n'.repeat(65_536)}`))),
    ]).toEqual([false, true, false, true, true, false, false, true])
  })

  it('prepares and encodes a creation of a node with a long name in later turns than that of its receipt', async () => {
    const { write, settle, proposed } = await leaderFixture()
    const path = `/${'ü'.repeat(70_000)}`
    write(1, OpCode.create, createBody(path))
    write(2, OpCode.create, createBody('/b'))
    expect(proposed).toEqual([])
    await settle()
    expect(proposed.map(({ header, txn }) => [header.cxid, 'path' in txn && txn.path])).toEqual([
      [1, path],
      [2, '/b'],
    ])
  })

  it('answers a write with a long path that cannot be decoded by an error transaction', async () => {
    const { write, settle, proposed } = await leaderFixture()
    const body = createBody(`/${'n'.repeat(70_000)}`).subarray(0, 70_002)
    expect(write(1, OpCode.create, body)).toBe(0)
    await settle()
    expect(proposed.map(({ txn }) => txn)).toEqual([{ type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }])
  })

  it.each([
    [100, 0],
    [101, 3],
  ])(
    'prepares and encodes the end of a session with %i ephemeral nodes with %i pauses',
    async (nodes, pauses) => {
      const { write, run, pipeline, settle, proposed } = await leaderFixture()
      for (let i = 0; i < nodes; i++) write(i, OpCode.create, createBody(`/${i}`, CreateMode.EPHEMERAL))
      await settle()
      const steps = pipeline.proposer.closeSession(SESSION, 0, undefined)
      let count = 0
      while (run(() => steps.next().done !== true)) count++
      expect(count).toBe(pauses)
      expect(proposed.at(-1)!.txn).toMatchObject({ paths2Delete: { length: nodes } })
    },
  )

  it('makes a local session global for its first ephemeral node alone, and only if settings allow that', async () => {
    const types = async (canUpgradeSessions?: boolean) => {
      const upgrades = canUpgradeSessions === undefined ? {} : { canUpgradeSessions }
      const { write, proposed, localSessions } = await leaderFixture({ localSessions: true, ...upgrades })
      const session = localSessions.add(LOCAL, 5000, 0)
      const its = { sessionId: LOCAL }
      write(1, OpCode.create, createBody('/p'), its)
      write(2, OpCode.create, createBody('/e', CreateMode.EPHEMERAL), its)
      write(3, OpCode.create, createBody('/f', CreateMode.EPHEMERAL), its)
      write(4, OpCode.create, createBody('/g', CreateMode.EPHEMERAL))
      return [session.isLocal, proposed.map(({ txn }) => txn.type)]
    }
    const { create, createSession, error } = OpCode
    expect(await types(true)).toEqual([false, [create, createSession, create, create, create]])
    const refused = [true, [create, error, error, create]]
    expect([await types(false), await types()]).toEqual([refused, refused])
  })
})
