import { OpCode, readGetDataResponse } from '@zabra/protocol'
import { DiskError } from '@zabra/runtime'
import { holdWrites } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { RawClient } from '../testing/test-server.ts'
import type { Member } from './member.ts'
import { Ensemble } from './testing/ensemble.ts'

const memberLine = (id: number, role = 'participant'): string =>
  `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:${role};${4000 + id}`

async function configurationAt(ensemble: Ensemble, id: number): Promise<string[]> {
  const client = await ensemble.client(id)
  client.read(1, OpCode.getData, '/zookeeper/config')
  await ensemble.until('the reply', () => client.frames.length > 0)
  const [reply] = client.replies()
  const text = new TextDecoder().decode(reply!.body.buffer() ?? undefined)
  client.connection.destroy()
  return text.split('\n')
}

const reconfigurable = { reconfigEnabled: true, skipAcl: true }

it('the first leader gives the configuration its first version', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  for (const id of [1, 2, 3]) expect((await configurationAt(ensemble, id)).at(-1)).toBe('version=100000000')
})

it('a removed follower follows without a vote and can be added again', async () => {
  const { ensemble, client } = await Ensemble.withClient(2, {}, reconfigurable)
  expect(await ensemble.reconfigure(client, { leaving: '1', from: 5n })).toBe('77:-103')
  expect(await ensemble.reconfigure(client, { leaving: '1' })).toBe('77:0')
  await ensemble.allServe()
  for (const id of [2, 3])
    expect((await configurationAt(ensemble, id)).some((each) => each.startsWith('server.1='))).toBe(false)
  // Both of the two voters are needed now.
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  const back = await ensemble.client(2)
  expect(await ensemble.reconfigure(back, { joining: memberLine(1) })).toBe('77:0')
  await ensemble.until('three voters', () => ensemble.running.every(({ serving }) => serving))
  for (const id of [1, 2, 3])
    expect(await configurationAt(ensemble, id)).toContain(memberLine(1).replace(';', ';0.0.0.0:'))
})

it('clients of a removed follower keep their sessions while it follows on', async () => {
  const { ensemble, client } = await Ensemble.withClient(2, {}, reconfigurable)
  const own = await ensemble.client(1)
  const { sessionId, timeOut } = own.session!
  expect(await ensemble.reconfigure(client, { leaving: '1' })).toBe('77:0')
  for (let ms = 0; ms < 3 * timeOut; ms += 1000) {
    own.read(1, OpCode.exists, '/')
    await ensemble.advance(1000)
  }
  expect([ensemble.leader, own.closed]).toEqual([3, false])
  expect((ensemble.server(3) as Member).service!.sessions.get(sessionId)).not.toBe(undefined)
})

describe('a member that was down while the ensemble lost most of its voters', () => {
  /** Removes three of five voters while member 5 is down, stops them, and starts member 5 again. */
  async function missScaleDown(settings: Partial<ServerSettings>): Promise<Ensemble> {
    const ensemble = await Ensemble.start(5, { ...reconfigurable, ...settings })
    await ensemble.member(5).crash()
    await ensemble.until('a leader', () => ensemble.leader !== undefined)
    await ensemble.allServe()
    const client = await ensemble.client(1)
    expect(await ensemble.reconfigure(client, { leaving: '3' })).toBe('77:0')
    await ensemble.allServe()
    const other = await ensemble.client(1)
    expect(await ensemble.reconfigure(other, { leaving: '4' })).toBe('77:0')
    for (const id of [3, 4]) await ensemble.member(id).crash()
    await ensemble.member(5).start()
    return ensemble
  }

  it('finds the others where members prove who they are', async () => {
    const ensemble = await missScaleDown({ quorumSecret: 'x'.repeat(40) })
    await ensemble.until('three members to serve', () => ensemble.running.every(({ serving }) => serving))
    const members = (await configurationAt(ensemble, 5)).filter((line) => line.startsWith('server.'))
    expect(members.map((line) => line.split('=')[0])).toEqual(['server.1', 'server.2', 'server.5'])
  })

  it('believes no minority of its voters where they do not, and says what to do', async () => {
    const ensemble = await missScaleDown({})
    await ensemble.until(
      'two members to serve',
      () => ensemble.server(1).serving && ensemble.server(2).serving,
    )
    await ensemble.advance(10_000)
    expect(ensemble.server(5)).toMatchObject({ role: 'looking', serving: false })
    const advice = 'copy the dynamic configuration file of a member to this server'
    expect(ensemble.lines.some((line) => line.includes(' 5 warn') && line.includes(advice))).toBe(true)
    await ensemble.member(5).crash()
    const { disk } = ensemble.member(1)
    const newest = disk
      .paths()
      .filter((path) => path.includes('.dynamic.'))
      .toSorted()
      .at(-1)!
    ensemble.member(5).disk.putFile(newest, await disk.readFile(newest))
    await ensemble.member(5).start()
    await ensemble.until('three members to serve', () => ensemble.running.every(({ serving }) => serving))
  })
})

it('a reconfig is answered with the new configuration and its stat', async () => {
  const { ensemble, client } = await Ensemble.withClient(2, {}, reconfigurable)
  client.frames.length = 0
  client.reconfigure(77, { leaving: '1' })
  await ensemble.until('the reply', () => client.frames.length > 0)
  const [{ err, zxid, body }] = client.replies() as [ReturnType<RawClient['replies']>[number]]
  const { data, stat } = readGetDataResponse(body)
  const text = new TextDecoder().decode(data ?? undefined).split('\n')
  expect([err, text.length, text.at(-1)]).toEqual([0, 3, `version=${zxid.toString(16)}`])
  expect([stat.mzxid, stat.dataLength, body.remaining]).toEqual([BigInt(zxid), data?.length, 0])
})

it('members join the designated leader without an election when the leader is removed', async () => {
  const { ensemble, client } = await Ensemble.withClient(1, {}, reconfigurable)
  expect(await ensemble.reconfigure(client, { leaving: '3' })).toBe('77:0')
  await ensemble.until('the new leader', () => ensemble.leader !== undefined && ensemble.leader !== 3)
  await ensemble.allServe()
  expect(ensemble.server(3).role).toBe('following')
  const later = await ensemble.client(3)
  expect(await ensemble.create(later, '/a')).toBe('1:0')
  // Members that restart find the leader that was not elected.
  const leader = ensemble.leader
  for (const id of [3, [1, 2].find((one) => one !== leader)!]) {
    await ensemble.restart(id, 5000)
    expect(ensemble.leader).toBe(leader)
  }
  // The configuration is on every disk: it holds after all members have restarted.
  for (const id of [1, 2, 3]) await ensemble.member(id).crash()
  for (const id of [1, 2]) await ensemble.member(id).start()
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
  expect((await configurationAt(ensemble, 1)).some((each) => each.startsWith('server.3='))).toBe(false)
  await ensemble.startServing(3)
})

it('a voter that has not reached the designated leader in time joins it again, which needs it', async () => {
  const { ensemble, client } = await Ensemble.withClient(1, {}, reconfigurable)
  // The designated leader is out of reach for longer than the other voter tries to connect.
  let until = Infinity
  ensemble.detour = (id, port) => (id === 1 && port === 2002 && ensemble.clock.monotonic() < until ? 9 : port)
  expect(await ensemble.reconfigure(client, { leaving: '3' })).toBe('77:0')
  until = ensemble.clock.monotonic() + 700
  await ensemble.until('the new leader', () => ensemble.leader === 2, 5000)
  expect(ensemble.lines.filter((line) => / 1 info Looking for a leader/.test(line)).length).toBeGreaterThan(1)
  expect(await ensemble.create(await ensemble.client(1), '/a')).toBe('1:0')
})

it.each([
  [1, 'follows the designated leader', 'following'],
  [2, 'is the designated leader', 'leading'],
])(
  'member %i, which %s, leaves its role once when its disk is full as the leader is removed',
  async (full, _, role) => {
    const { ensemble, client } = await Ensemble.withClient(1, {}, reconfigurable)
    const { disk } = ensemble.member(full)
    // The log has preallocated space, so only a new file fails.
    disk.injectFault = (call, path) =>
      call === 'write' && /dynamic\.\d/.test(path) ? { code: 'ENOSPC' } : undefined
    const before = ensemble.lines.length
    await ensemble.reconfigure(client, { leaving: '3' })
    await ensemble.until('the warning', () => ensemble.lines.join().includes('ENOSPC'))
    disk.injectFault = undefined
    await ensemble.allServe(5000)
    // Long enough for an election beside the role, if there were one, to end the role.
    await ensemble.advance(20_000)
    expect([ensemble.leader, ensemble.server(full).role]).toEqual([2, role])
    const lines = ensemble.lines.slice(before).join('\n')
    expect(lines).not.toContain('This server is not looking any more')
    expect(lines).not.toContain(' 2 info Looking for a leader')
    const later = await ensemble.client(full)
    expect(await ensemble.create(later, '/a')).toBe('1:0')
  },
)

it('a member whose disk is full waits for space before it activates a newer configuration of the others', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  await ensemble.member(1).crash()
  expect(await ensemble.reconfigure(await ensemble.client(2), { joining: memberLine(9, 'observer') })).toBe(
    '77:0',
  )
  const { disk } = ensemble.member(1)
  disk.injectFault = (call, path) =>
    call === 'write' && /dynamic\.\d/.test(path) ? { code: 'ENOSPC' } : undefined
  await ensemble.member(1).start()
  await ensemble.advance(5000)
  expect([ensemble.member(1).failure, ensemble.lines.join().includes('ENOSPC')]).toEqual([undefined, true])
  disk.injectFault = undefined
  await ensemble.until('server 1 to serve again', () => ensemble.server(1).serving)
  expect(disk.paths().some((path) => /dynamic\.\d/.test(path))).toBe(true)
})

it('a member continues when its full disk refuses a configuration after its role as leader has ended', async () => {
  const { ensemble, client } = await Ensemble.withClient(3, {}, reconfigurable)
  const { disk } = ensemble.member(3)
  const replaceFile = disk.replaceFile.bind(disk)
  let refuse = (): void => {}
  const refused = new Promise<void>((resolve) => (refuse = resolve))
  let isFull = true
  disk.replaceFile = async (path, bytes) => {
    if (isFull && /dynamic\.\d/.test(path)) {
      await refused
      throw new DiskError('There is no space left', 'ENOSPC', path)
    }
    return replaceFile(path, bytes)
  }
  expect(await ensemble.reconfigure(client, { joining: memberLine(9, 'observer') })).toBe('77:0')
  for (const id of [1, 2]) await ensemble.member(id).crash()
  await ensemble.until('the end of its role', () => ensemble.server(3).role === 'looking')
  refuse()
  await ensemble.advance(2000)
  expect(ensemble.member(3).failure).toBe(undefined)
  isFull = false
  for (const id of [1, 2]) await ensemble.member(id).start()
  await ensemble.allServe()
  expect(await configurationAt(ensemble, 3)).toContain(memberLine(9, 'observer').replace(';', ';0.0.0.0:'))
})

it('a follower acknowledges a reconfig only when the configuration is on disk as the proposed one', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  await ensemble.member(2).crash()
  const client = await ensemble.client(3)
  const { disk } = ensemble.member(1)
  const replaceFile = disk.replaceFile.bind(disk)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  disk.replaceFile = async (path, bytes) => {
    if (path.endsWith('.next')) await held
    return replaceFile(path, bytes)
  }
  client.reconfigure(77, { joining: memberLine(9, 'observer') })
  await ensemble.advance(2000)
  expect([client.closed, client.takeReceived()]).toEqual([false, []])
  release()
  expect(await ensemble.receive(client, 1)).toEqual(['77:0'])
})

it('a server that no configuration names reports as many sessions at a time as its leader accepts of it', async () => {
  const ensemble = await Ensemble.start(3, {
    ...reconfigurable,
    juteMaxBufferBytes: 500,
    juteMaxBufferExtraBytes: 0,
  })
  const known = [1, 2, 3].map((one) => memberLine(one)).join('\n')
  await ensemble.join(4, parseConfiguration(`${known}\n${memberLine(4, 'observer')}`))
  await ensemble.until('the joiner', () => ensemble.server(4).serving)
  const clients = []
  for (let count = 0; count < 60; count++) clients.push(await ensemble.client(4))
  const before = ensemble.lines.length
  for (const client of clients) client.ask(-2, OpCode.ping)
  await ensemble.advance(3000)
  expect(ensemble.lines.slice(before).filter((line) => line.includes('is lost'))).toEqual([])
  expect(clients.every(({ closed }) => !closed)).toBe(true)
})

it('an unknown server can join as a participant and as an observer', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  for (const [id, role] of [
    [4, 'participant'],
    [5, 'observer'],
  ] as const) {
    const known = [1, 2, 3].map((one) => memberLine(one)).join('\n')
    await ensemble.join(id, parseConfiguration(`${known}\n${memberLine(id, role)}`))
    await ensemble.until(`the joiner ${id}`, () => ensemble.server(id).serving)
    const client = await ensemble.client(1)
    expect(await ensemble.reconfigure(client, { joining: memberLine(id, role) })).toBe('77:0')
    await ensemble.until(`its role`, () => ensemble.server(id).serving && ensemble.leader !== undefined)
    await ensemble.allServe()
  }
  expect(ensemble.server(5).role).toBe('observing')
  expect((await configurationAt(ensemble, 5)).length).toBe(6)
  const client = await ensemble.client(5)
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  // Four voters: with two of them down there is no quorum, with one of them back there is.
  await ensemble.member(1).crash()
  await ensemble.member(2).crash()
  await ensemble.until('no leader', () => ensemble.leader === undefined)
  await ensemble.member(1).start()
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
})

it('a member whose addresses a reconfig has changed listens on the new election and quorum ports', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  const moved = 'server.1=127.0.0.1:2501:3501:participant;4001'
  const client = await ensemble.client(2)
  expect(await ensemble.reconfigure(client, { joining: moved })).toBe('77:0')
  await ensemble.until('the move', () =>
    ensemble.lines.some((text) => text.includes('election port has moved')),
  )
  const wire = await ensemble.network.connect({ host: 'x', port: 3501 })
  wire.destroy()
  await expect(ensemble.network.connect({ host: 'x', port: 3001 })).rejects.toThrow('ECONNREFUSED')
  // It can lead when the members with larger ids are gone, and is found at its new addresses.
  await ensemble.member(3).crash()
  await ensemble.until('another leader', () => ensemble.leader === 2)
  await ensemble.until('two that serve', () => ensemble.running.every(({ serving }) => serving))
  const writer = await ensemble.client(1)
  for (let xid = 1; xid <= 3; xid++) writer.create(xid, `/n${xid}`)
  await ensemble.until('the replies', () => writer.frames.length > 2)
  await ensemble.member(2).crash()
  await ensemble.member(3).start()
  await ensemble.until('the moved one leads', () => ensemble.leader === 1)
  await ensemble.until('its follower', () => ensemble.server(3).serving)
})

/** Joins servers 4 and 5 to an ensemble of three, as servers that no configuration names. */
async function joinFourAndFive(ensemble: Ensemble): Promise<void> {
  const known = [1, 2, 3].map((one) => memberLine(one)).join('\n')
  for (const id of [4, 5]) {
    await ensemble.join(id, parseConfiguration(`${known}\n${memberLine(id)}`))
    await ensemble.until(`the joiner ${id}`, () => ensemble.server(id).serving)
  }
}

it('a reconfiguration that was lost binds no server that has followed a leader since', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  await joinFourAndFive(ensemble)
  const client = await ensemble.client(3)
  // Only server 2 has it on disk.
  ensemble.cut(1)
  for (const id of [3, 4, 5]) holdWrites(ensemble.member(id).disk)
  client.reconfigure(77, { joining: [4, 5].map((id) => memberLine(id)).join() })
  await ensemble.advance(200)
  for (const id of [2, 3, 4, 5]) await ensemble.member(id).crash()
  ensemble.heal(1)
  ensemble.member(3).disk.beforeWrite = undefined
  await ensemble.member(3).start()
  await ensemble.until('a leader without the change', () => ensemble.leader === 3)
  await ensemble.startServing(2)
  expect(await ensemble.create(await ensemble.client(2), '/a')).toBe('1:0')
  // With it, server 2 could lead with three of five servers only, and server 1 would vote for no other.
  await ensemble.member(3).crash()
  await ensemble.until('a leader of the two that are left', () => ensemble.leader === 2)
  expect((await configurationAt(ensemble, 1)).length).toBe(4)
})

it('a leader brings the change that it has seen last into force, also where none is allowed any more', async () => {
  const ensemble = new Ensemble(3)
  const { disk } = ensemble.member(3)
  const text = `${[2, 3].map((id) => memberLine(id)).join('\n')}\nversion=5`
  await disk.makeFolder('/data')
  disk.putFile('/data/zoo.cfg.dynamic.next', new TextEncoder().encode(text))
  // It has acknowledged the change with the epoch of an earlier leader.
  for (const name of ['acceptedEpoch', 'currentEpoch'])
    disk.putFile(`/data/version-2/${name}`, new TextEncoder().encode('1'))
  for (const id of [2, 3]) await ensemble.member(id).start()
  await ensemble.allServe()
  const [follower, leader] = [await configurationAt(ensemble, 2), await configurationAt(ensemble, 3)]
  expect([ensemble.leader, leader.at(-1), leader]).toEqual([3, 'version=5', follower])
})

describe('a reconfiguration that only one server has when all lose power, and whose new members do not return', () => {
  const PROPOSED = new TextEncoder().encode(
    `${[3, 4, 5].map((id) => memberLine(id)).join('\n')}\nversion=100000001`,
  )

  async function electWithout(ensemble: Ensemble): Promise<void> {
    for (const id of [1, 2, 3]) await ensemble.member(id).start()
    await ensemble.until('a leader of those that are left', () => ensemble.leader !== undefined)
    await ensemble.allServe()
    expect(await configurationAt(ensemble, 3)).toHaveLength(4)
    expect(await ensemble.create(await ensemble.client(3), '/a')).toBe('1:0')
  }

  it('keeps no leader from being elected where it is only proposed', async () => {
    const ensemble = await Ensemble.start(3, reconfigurable)
    for (const id of [1, 2, 3]) await ensemble.member(id).crash()
    // The power was cut before the leader had the change in its log.
    ensemble.member(3).disk.putFile('/data/zoo.cfg.dynamic.next', PROPOSED)
    await electWithout(ensemble)
    expect(ensemble.leader).toBe(3)
  })

  it('is kept where its log may have had it, and was set aside', async () => {
    const ensemble = await Ensemble.start(3, reconfigurable)
    for (const id of [1, 2, 3]) await ensemble.member(id).crash()
    const { disk } = ensemble.member(3)
    disk.putFile('/data/zoo.cfg.dynamic.next', PROPOSED)
    disk.putFile('/data/version-2/distrusted', new Uint8Array())
    await ensemble.member(3).start()
    await ensemble.advance(1000)
    // The new members may be the only ones that are left.
    expect(await disk.exists('/data/zoo.cfg.dynamic.next')).toBe(true)
  })

  it('keeps no leader from being elected where it is logged', async () => {
    const ensemble = await Ensemble.start(3, reconfigurable)
    await joinFourAndFive(ensemble)
    const client = await ensemble.client(3)
    for (const id of [1, 2, 4, 5]) holdWrites(ensemble.member(id).disk)
    client.reconfigure(77, { joining: [4, 5].map((id) => memberLine(id)).join(), leaving: '1,2' })
    await ensemble.advance(200)
    for (const id of [1, 2, 3, 4, 5]) await ensemble.member(id).crash()
    for (const id of [1, 2]) ensemble.member(id).disk.beforeWrite = undefined
    await electWithout(ensemble)
    expect(ensemble.leader).toBe(2)
  })
})
