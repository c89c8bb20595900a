import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { expect, it, vi } from 'vitest'
import { encodeLearnerInfo, encodePacket, PacketType, PROTOCOL_VERSION } from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'

/** Starts three members and stops one that does not lead, with these epochs in its files. */
async function startWithout(accepted: number, current: number): Promise<{ ensemble: Ensemble; id: number }> {
  const ensemble = await Ensemble.start(3)
  const id = 1
  expect(ensemble.leader).toBe(3)
  await ensemble.member(id).stop()
  const { disk } = ensemble.member(id)
  for (const [name, epoch] of [
    ['acceptedEpoch', accepted],
    ['currentEpoch', current],
  ] as const)
    disk.putFile(`/data/version-2/${name}`, new TextEncoder().encode(String(epoch)))
  return { ensemble, id }
}

async function write(ensemble: Ensemble, path: string): Promise<void> {
  const client = await ensemble.client(2)
  client.create(1, path)
  expect(await ensemble.receive(client, 1)).toEqual(['1:0'])
}

async function read(ensemble: Ensemble, id: number, path: string): Promise<string[]> {
  const client = await ensemble.client(id)
  client.ask(1, OpCode.sync, (w) => w.string('/'))
  client.read(2, OpCode.exists, path)
  return ensemble.receive(client, 2)
}

it('a member that returns with older data of a later epoch undoes no acknowledged write', async () => {
  const { ensemble, id } = await startWithout(5, 5)
  await write(ensemble, '/kept')
  const before = ensemble.lines.length
  // It joins the leader at growing intervals, of 10 s in the end. A member that joins at once again would do so for ever.
  let joined = 0
  vi.spyOn(ensemble, 'isCut').mockImplementation(
    (from, port) => from === id && port === 2003 && ++joined > 24,
  )
  await ensemble.member(id).start()
  await ensemble.advance(120_000)
  expect(joined).toBeLessThan(24)
  expect([ensemble.leader, ensemble.server(3).epoch, ensemble.server(id).serving]).toEqual([3, 1, false])
  expect(await read(ensemble, 2, '/kept')).toEqual(['1:0', '2:0'])
  const since = ensemble.lines.slice(before)
  expect(
    since.filter((line) => line.includes('run zabra recover adopt on its data folder')).length,
  ).toBeGreaterThan(0)
  // One in 10 s, after the first attempts.
  for (const kind of ['Looking for a leader', 'Server 3 is elected', 'is not following any more'])
    expect(since.filter((line) => line.startsWith(kind, line.indexOf('info') + 5)).length).toBeLessThan(17)
  const ofLeader = since.filter((line) => line.includes('The connection of a learner is lost'))
  expect(ofLeader.length).toBeLessThan(14)
})

it('a member that has accepted a later epoch follows without a vote, and votes after the next election', async () => {
  const { ensemble, id } = await startWithout(4, 1)
  await write(ensemble, '/a')
  await ensemble.member(id).start()
  await ensemble.until('the member to serve', () => ensemble.server(id).serving)
  expect([ensemble.leader, ensemble.server(3).epoch, ensemble.server(id).role]).toEqual([3, 1, 'observing'])
  await write(ensemble, '/b')
  for (const path of ['/a', '/b']) expect(await read(ensemble, id, path)).toEqual(['1:0', '2:0'])

  await ensemble.member(2).stop()
  await ensemble.until(
    'a leader of the next epoch',
    () => ensemble.leader !== undefined && ensemble.server(3).epoch > 1,
  )
  expect([ensemble.server(3).epoch, ensemble.server(id).role]).toEqual([5, 'following'])
})

it('a member that could follow only without a vote joins a leader without followers once, and votes in the next election', async () => {
  const { ensemble, id } = await startWithout(4, 1)
  await write(ensemble, '/a')
  // The leader has lost its only follower, and does not know yet.
  ensemble.member(2).silence()
  let attempts = 0
  vi.spyOn(ensemble, 'isCut').mockImplementation((from, port) => {
    if (from === id && port === 2003) attempts++
    return port % 1000 === 2 || from === 2
  })
  await ensemble.member(id).start()
  await ensemble.advance(2500)
  expect([ensemble.server(3).role, ensemble.server(id).role, attempts]).toEqual(['leading', 'looking', 1])
  await ensemble.until('the member to follow', () => ensemble.server(id).serving, 8000)
  expect([ensemble.server(3).epoch, ensemble.server(id).role]).toEqual([5, 'following'])
  expect(await read(ensemble, id, '/a')).toEqual(['1:0', '2:0'])
})

it('a member that its leader has refused votes in the next term of that leader, whose vote still has the earlier epoch', async () => {
  const { ensemble, id } = await startWithout(4, 1)
  const isCut = ensemble.isCut.bind(ensemble)
  vi.spyOn(ensemble, 'isCut').mockImplementation((from, port) => {
    // The leader loses its only follower while this member joins it.
    if (from === id && port === 2003) ensemble.cut(2)
    return isCut(from, port)
  })
  await ensemble.member(id).start()
  await ensemble.until('the member to follow', () => ensemble.server(id).serving, 5000)
  expect(ensemble.lines.join('\n')).toContain('is before the accepted epoch 4')
  expect([ensemble.server(3).epoch, ensemble.server(id).role]).toEqual([5, 'following'])
})

it('a member without a vote gets one when leadership is handed over, though the others are no quorum without it', async () => {
  const { ensemble, id } = await startWithout(900, 1)
  await write(ensemble, '/a')
  await ensemble.member(id).start()
  await ensemble.until('the member to serve', () => ensemble.server(id).serving)
  expect(ensemble.server(id).role).toBe('observing')

  expect(ensemble.server(3).yieldLeadership()).toBe(true)
  await ensemble.until('another leader', () => ensemble.leader !== undefined && ensemble.leader !== 3)
  await ensemble.allServe()
  const { leader } = ensemble
  for (const member of [1, 2, 3])
    expect([ensemble.server(member).epoch, ensemble.server(member).role]).toEqual([
      901,
      member === leader ? 'leading' : 'following',
    ])
  for (const member of [1, 2, 3]) expect(await read(ensemble, member, '/a')).toEqual(['1:0', '2:0'])
})

/** Connects to the leader as a voter that has accepted an epoch. */
async function claimEpoch(ensemble: Ensemble, serverId: number, epoch: number): Promise<Connection> {
  const connection = await ensemble.network.connect({ host: 'x', port: 2003 })
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  const writer = new Writer(64)
  const data = encodeLearnerInfo({ serverId, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  encodePacket(writer, { type: PacketType.followerInfo, zxid: makeZxid(epoch, 0), data, auth: null })
  connection.write(writer.take())
  return connection
}

it('forty claims of later epochs, of absent and connected voters, make an established leader abdicate not once', async () => {
  const ensemble = await Ensemble.start(3)
  await ensemble.member(1).stop()
  await ensemble.advance(1000)
  const before = ensemble.lines.length
  const client = await ensemble.client(2)
  for (let claim = 1; claim <= 40; claim++) {
    const connection = await claimEpoch(ensemble, 1 + (claim % 2), [2, 3, 1025, 1026, 0x1f_fffd][claim % 5]!)
    await ensemble.advance(300)
    client.create(claim, `/${claim}`)
    expect(await ensemble.receive(client, 1)).toEqual([`${claim}:0`])
    if (claim % 3 === 0) connection.destroy()
  }
  await ensemble.advance(10_000)
  expect([ensemble.leader, ensemble.server(3).epoch, ensemble.server(2).epoch]).toEqual([3, 1, 1])
  expect(ensemble.lines.slice(before).filter((line) => line.includes('Looking for a leader'))).toEqual([])
})

it('a FOLLOWERINFO with the last epoch leaves an established leader and all epochs alone', async () => {
  const ensemble = await Ensemble.start(3)
  await ensemble.member(1).stop()
  const connection = await claimEpoch(ensemble, 1, 0x1f_fffd)
  await ensemble.advance(10_000)
  expect([ensemble.leader, ensemble.server(3).epoch]).toEqual([3, 1])
  connection.destroy()
  await ensemble.member(1).start()
  await ensemble.allServe()
  expect([ensemble.leader, ensemble.server(3).epoch]).toEqual([3, 1])
})
