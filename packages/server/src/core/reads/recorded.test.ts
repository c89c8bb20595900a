import { OPEN_ACL_UNSAFE, OpCode, Reader, type ACL } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { ReadFixture, Client, hex, text } from './testing/read-fixture.ts'

const bytesOf = (frame: string): Uint8Array => {
  const digits = frame.replaceAll(' ', '')
  return Uint8Array.from({ length: digits.length / 2 }, (_, i) =>
    Number.parseInt(digits.slice(i * 2, i * 2 + 2), 16),
  )
}

/** Sends a recorded request and expects the body and the error of the recorded reply. */
function expectReply(fixture: ReadFixture, request: string, reply: string): void {
  const asked = bytesOf(request)
  const answered = bytesOf(reply)
  const { err, bytes } = fixture.ask(new Reader(asked, 8).int(), asked.subarray(12))
  expect([err, bytes]).toEqual([new Reader(answered, 16).int(), hex(answered.subarray(20))])
}

const SESSION = 0x0100000000000000n
const BORN = 1_795_217_648_323
const CHANGED = 1_795_217_648_426

/** Creates a parent with the history of the recording up to a zxid. */
function fx(until: number): ReadFixture {
  const client = new Client(SESSION)
  client.identities = [
    { scheme: 'digest', id: 'bob:hash' },
    { scheme: 'digest', id: 'al:hash' },
    { scheme: 'ip', id: '127.0.0.1' },
  ]
  const fixture = new ReadFixture({ client, empty: true })
  const node = (
    path: string,
    data: string | null,
    ephemeral = false,
    acl: readonly ACL[] = OPEN_ACL_UNSAFE,
  ) => ({ path, data: data === null ? null : text(data), acl, ephemeral, parentCVersion: -1 }) as const
  const m = '/fx/m'
  const history = [
    { type: OpCode.createSession, timeOut: 12_000 },
    { type: OpCode.create, ...node('/fx', 'hello') },
    { type: OpCode.create2, ...node('/fx/s-0000000000', 'x', true) },
    { type: OpCode.createContainer, ...node('/fx/c', null) },
    { type: OpCode.createTTL, ...node('/fx/t', null), ttl: 60_000 },
    { type: OpCode.setData, path: '/fx', data: text('world'), version: 1 },
    { type: OpCode.error, err: -103 },
    { type: OpCode.setACL, path: '/fx', acl: OPEN_ACL_UNSAFE, version: 1 },
    {
      type: OpCode.multi,
      txns: [
        { type: OpCode.create, ...node(m, 'x') },
        { type: OpCode.delete, path: m },
      ],
    },
    { type: OpCode.error, err: -101 },
    { type: OpCode.create, ...node('/fx/u', null) },
  ] as const
  for (const [i, txn] of history.slice(0, until).entries())
    fixture.apply(txn, i + 1, i + 1 < 6 ? BORN : CHANGED)
  return fixture
}

describe('the replies of a ZooKeeper 3.9 server, byte for byte', () => {
  it('exists of an absent node', () => {
    expectReply(
      fx(5),
      '00000015 00000005 00000003 00000008 2f66782f6e6f6e65 01',
      '00000010 00000005 0000000000000005 ffffff9b',
    )
  })

  it('getData', () => {
    expectReply(
      fx(5),
      '00000010 00000006 00000004 00000003 2f6678 01',
      '0000005d 00000006 0000000000000005 00000000 00000005 68656c6c6f 0000000000000002 0000000000000002 000001a1fb4f6ac3 000001a1fb4f6ac3 00000000 00000003 00000000 0000000000000000 00000005 00000003 0000000000000005',
    )
  })

  it('getData of a node without data', () => {
    const fixture = new ReadFixture({ empty: true })
    fixture.apply(createOf('/nulld'), 34, 1_795_217_804_121)
    expectReply(
      fixture,
      '00000013 00000006 00000004 00000006 2f6e756c6c64 00',
      '00000058 00000006 0000000000000022 00000000 ffffffff 0000000000000022 0000000000000022 000001a1fb51cb59 000001a1fb51cb59 00000000 00000000 00000000 0000000000000000 00000000 00000000 0000000000000022',
    )
  })

  it('getChildren2 and getChildren', () => {
    expectReply(
      fx(5),
      '00000010 00000007 0000000c 00000003 2f6678 01',
      '00000072 00000007 0000000000000005 00000000 00000003 0000000c 732d30303030303030303030 00000001 63 00000001 74 0000000000000002 0000000000000002 000001a1fb4f6ac3 000001a1fb4f6ac3 00000000 00000003 00000000 0000000000000000 00000005 00000003 0000000000000005',
    )
    expectReply(
      fx(5),
      '00000010 00000008 00000008 00000003 2f6678 00',
      '0000002e 00000008 0000000000000005 00000000 00000003 0000000c 732d30303030303030303030 00000001 63 00000001 74',
    )
  })

  it('getACL', () => {
    expectReply(
      fx(7),
      '0000000f 0000000b 00000006 00000003 2f6678',
      '0000006f 0000000b 0000000000000007 00000000 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 0000000000000002 0000000000000006 000001a1fb4f6ac3 000001a1fb4f6b2a 00000001 00000003 00000000 0000000000000000 00000005 00000003 0000000000000005',
    )
  })

  it('getACL of a client with ADMIN permission on a digest ACL', () => {
    const bob = { scheme: 'digest', id: 'bob:ikIaKsbtGweaHnb/jKn7OHqbunM=' }
    const fixture = new ReadFixture({ empty: true })
    fixture.client.identities = [bob]
    const create = (path: string) => createOf(path, { data: text('ab'), acl: [{ perms: 31, id: bob }] })
    fixture.apply(create('/kz'), 15, 1_795_217_678_380)
    fixture.apply(create('/kz/a'), 16)
    fixture.apply({ type: OpCode.setData, path: '/kz', data: text('cd'), version: 1 }, 17, 1_795_217_678_397)
    fixture.apply({ type: OpCode.multi, txns: [create('/kz/b'), { type: OpCode.delete, path: '/kz/a' }] }, 18)
    expectReply(
      fixture,
      '0000000f 00000009 00000006 00000003 2f6b7a',
      '0000008a 00000009 0000000000000012 00000000 00000001 0000001f 00000006 646967657374 00000020 626f623a696b49614b73627447776561486e622f6a4b6e374f487162756e4d3d 000000000000000f 0000000000000011 000001a1fb4fe02c 000001a1fb4fe03d 00000001 00000003 00000000 0000000000000000 00000002 00000001 0000000000000012',
    )
  })

  it('sync, also with a character that is encoded differently in the reply', () => {
    expectReply(
      fx(8),
      '0000000f 0000000d 00000009 00000003 2f6678',
      '00000017 0000000d 0000000000000008 00000000 00000003 2f6678',
    )
    expectReply(
      fx(8),
      '00000011 00000007 00000009 00000005 2ff09f9880',
      '0000001b 00000007 0000000000000022 00000000 00000007 2feda0bdedb880',
    )
  })

  it('addWatch', () => {
    expectReply(
      fx(8),
      '00000013 0000000e 0000006a 00000003 2f6678 00000001',
      '00000014 0000000e 0000000000000008 00000000 00000000',
    )
  })

  it('multiRead', () => {
    expectReply(
      fx(10),
      '00000033 00000012 00000016 00000008 00 ffffffff 00000003 2f6678 00 00000004 00 ffffffff 00000003 2f6678 00 ffffffff 01 ffffffff',
      '00000096 00000012 000000000000000a 00000000 00000008 00 00000000 00000003 0000000c 732d30303030303030303030 00000001 63 00000001 74 00000004 00 00000000 00000005 776f726c64 0000000000000002 0000000000000006 000001a1fb4f6ac3 000001a1fb4f6b2a 00000001 00000005 00000001 0000000000000000 00000005 00000003 0000000000000009 ffffffff 01 ffffffff',
    )
  })

  it('getEphemerals, getAllChildrenNumber, whoAmI and ping', () => {
    expectReply(
      fx(11),
      '0000000d 00000014 00000067 00000001 2f',
      '00000028 00000014 000000000000000b 00000000 00000001 00000010 2f66782f732d30303030303030303030',
    )
    expectReply(
      fx(11),
      '0000000f 00000015 00000068 00000003 2f6678',
      '00000014 00000015 000000000000000b 00000000 00000004',
    )
    expectReply(
      fx(11),
      '00000008 00000016 0000006b',
      '00000048 00000016 000000000000000b 00000000 00000003 00000006 646967657374 00000003 626f62 00000006 646967657374 00000002 616c 00000002 6970 00000009 3132372e302e302e31',
    )
    expectReply(fx(11), '00000008 fffffffe 0000000b', '00000010 fffffffe 000000000000000b 00000000')
  })

  it('setWatches2 of a client that has missed no change', () => {
    const fixture = fx(11)
    expectReply(
      fixture,
      '0000005d 0000001a 00000069 000000000000000b 00000001 00000003 2f6678 00000002 00000008 2f66782f6e6f6e65 00000009 2f66782f6e6f6e6532 00000001 00000005 2f66782f63 00000001 00000005 2f66782f63 00000001 00000003 2f6678',
      '00000010 0000001a 000000000000000b 00000000',
    )
    expect(fixture.client.events).toEqual([])
    expect(['/fx', '/fx/none', '/fx/none2', '/fx/c'].map((path) => fixture.held(path))).toEqual([
      [2, 3, 5],
      [2, 3],
      [2, 3],
      [1, 3, 4],
    ])
  })

  it('setWatches with a stale watch, then checkWatches and removeWatches of a new one', () => {
    const fixture = new ReadFixture({ empty: true })
    fixture.apply(createOf('/wx'), 27)
    fixture.apply({ type: OpCode.setData, path: '/wx', data: null, version: 1 }, 29)
    expectReply(
      fixture,
      '00000023 fffffff8 00000065 000000000000001b 00000001 00000003 2f7778 00000000 00000000',
      '00000010 fffffff8 000000000000001d 00000000',
    )
    expect(fixture.client.frames).toEqual([
      '0000001fffffffffffffffffffffffff000000000000000300000003' + '000000032f7778',
    ])
    const [check, remove] = [
      '00000013 00000008 00000011 00000003 2f7778 00000002',
      '00000013 00000009 00000012 00000003 2f7778 00000002',
    ]
    const [found, none] = [
      '00000010 00000008 000000000000001d 00000000',
      '00000010 00000008 000000000000001d ffffff87',
    ]
    expectReply(fixture, check, none)
    fixture.look(OpCode.getData, '/wx', true)
    expectReply(fixture, check, found)
    expectReply(fixture, remove, found)
    expectReply(fixture, remove, none)
  })
})
