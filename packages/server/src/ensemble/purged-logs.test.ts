import { ErrorCode, OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it('a member that was away while a purge removed the logs that it needs is sent a snapshot, and has the same tree', async () => {
  const ensemble = await Ensemble.start(3, {
    snapCount: 10,
    snapTreeShare: 0,
    snapshotSizeFactor: 0,
    purgeIntervalMs: 2000,
    purgeRetainCount: 3,
  })
  const client = await ensemble.client(2)
  let xid = 0
  const write = async (from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at++) client.create(++xid, `/n${at}`)
    const replies = await ensemble.receive(client, to - from)
    expect(replies.every((reply) => reply.endsWith(':0'))).toBe(true)
  }
  await write(0, 20)
  await ensemble.until(
    'all writes',
    () => ensemble.server(1).stats().nodes === ensemble.server(3).stats().nodes,
  )
  const { disk } = ensemble.member(3)
  const logs = async (): Promise<string[]> =>
    (await disk.list('/data/version-2')).filter((name) => name.startsWith('log.')).sort()
  const before = await logs()
  await ensemble.member(1).crash()
  client.delete(++xid, '/n0')
  await ensemble.receive(client, 1)
  for (let from = 20; from < 720; from += 20) await write(from, from + 20)
  await ensemble.advance(4000)
  const left = await logs()
  expect(left.filter((name) => before.includes(name))).toEqual([])
  const { length } = ensemble.lines
  await ensemble.startServing(1)
  const how = ensemble.lines.slice(length).filter((line) => line.includes('brings this server up to date'))
  expect(how).toEqual([expect.stringContaining('"how":"snap"')])
  expect(ensemble.server(1).stats()).toMatchObject({
    nodes: ensemble.server(3).stats().nodes,
    lastZxid: ensemble.server(3).stats().lastZxid,
  })
  expect(await ensemble.read(1, '/n0', '/n1', '/n719')).toEqual([`1:${ErrorCode.NONODE}`, '2:0', '3:0'])
  // A transaction has the digest of the tree of the leader, without which the member would leave.
  const session = await ensemble.client(1)
  expect(await ensemble.create(session, '/after')).toBe('1:0')
  session.read(2, OpCode.exists, '/after')
  expect(await ensemble.receive(session, 1)).toEqual(['2:0'])
  expect(ensemble.lines.slice(length).join('\n')).not.toContain('is not that of its leader')
})
