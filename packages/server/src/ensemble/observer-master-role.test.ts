import { OpCode } from '@zabra/protocol'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const PORT = 5001

/** Starts three voters, and observers from 4 on. All members share one host, so only one follower can have the port. */
async function start(size: number, master = 1, settings: object = {}): Promise<Ensemble> {
  const observers = Array.from({ length: size - 3 }, (_, index) => index + 4)
  const ensemble = new Ensemble(size, { observers, ...settings })
  for (const id of [master, ...observers]) giveMasterPort(ensemble, id)
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  return ensemble
}

function giveMasterPort(ensemble: Ensemble, id: number): void {
  const member = ensemble.member(id)
  member.settings = Object.freeze({ ...member.settings, observerMasterPort: PORT })
}

/** Returns the number of synced observers of a member, as `mntr` reports it. */
async function observersOf(ensemble: Ensemble, id: number): Promise<number> {
  return Number(/zk_synced_observers\t(\d+)/.exec(await ensemble.command(id, 'mntr'))?.[1] ?? 0)
}

const untilServing = (ensemble: Ensemble, id: number): Promise<void> =>
  ensemble.until(`${id} serves`, () => ensemble.server(id).serving)

it('an observer of a follower serves writes, reads, syncs and watches', async () => {
  const ensemble = await start(4)
  expect(await observersOf(ensemble, 1)).toBe(1)
  expect(await observersOf(ensemble, 3)).toBe(0)
  const [client, watcher] = [await ensemble.client(4), await ensemble.client(4)]
  watcher.read(1, OpCode.exists, '/a', true)
  await ensemble.receive(watcher, 1)
  client.create(1, '/a', 1, 'x')
  client.read(2, OpCode.getData, '/a')
  client.sync(3)
  expect(await ensemble.receive(client, 3)).toEqual(['1:0', '2:0', '3:0'])
  expect(watcher.takeReceived()).toEqual(['event 1 /a'])
  // Syncs of the follower's own clients are answered in order with those of the observer.
  const own = await ensemble.client(1)
  own.create(1, '/own')
  own.sync(2)
  client.sync(4)
  own.sync(3)
  expect(await ensemble.receive(own, 3)).toEqual(['1:0', '2:0', '3:0'])
  expect(await ensemble.receive(client, 1)).toEqual(['4:0'])
})

it("an observer that reconnects is synced from the follower's window", async () => {
  const ensemble = await start(4)
  await ensemble.member(4).crash()
  const client = await ensemble.client(2)
  for (let i = 1; i <= 20; i++) client.create(i, `/n${i}`)
  await ensemble.receive(client, 20)
  await ensemble.startServing(4)
  expect(await observersOf(ensemble, 1)).toBe(1)
  expect(await observersOf(ensemble, 3)).toBe(0)
  expect(await ensemble.read(4, '/n20')).toEqual(['1:0'])
})

it('a follower ends serving observers when it is removed from the configuration, and serves them once it is a member again', async () => {
  const ensemble = await start(4, 1, { reconfigEnabled: true, skipAcl: true })
  const line = 'server.1=127.0.0.1:2001:3001:participant;4001'
  expect(await ensemble.reconfigure(await ensemble.client(2), { leaving: '1' })).toBe('77:0')
  await ensemble.advance(10_000)
  // It finds the leader, which believes members alone about their observers.
  await untilServing(ensemble, 4)
  expect([ensemble.server(1).role, await observersOf(ensemble, 1)]).toEqual(['following', 0])
  expect(await ensemble.read(4, '/')).toEqual(['1:0'])
  expect(await ensemble.reconfigure(await ensemble.client(2), { joining: line })).toBe('77:0')
  await ensemble.restart(4, 5000)
  await untilServing(ensemble, 4)
  expect(await observersOf(ensemble, 1)).toBe(1)
})

it('a new observer is sent a snapshot by the follower during writes', async () => {
  const ensemble = await start(4, 1, { forceSnapshotSync: true })
  const client = await ensemble.client(2)
  for (let i = 1; i <= 200; i++) client.create(i, `/n${i}`, 0, 'x'.repeat(500))
  await ensemble.receive(client, 200)
  await ensemble.member(4).crash()
  const starting = ensemble.member(4).start()
  for (let i = 201; i <= 300; i++) {
    client.create(i, `/n${i}`, 0, 'y'.repeat(500))
    if (i % 10 === 0) await ensemble.advance(10)
  }
  await starting
  await untilServing(ensemble, 4)
  expect(ensemble.lines.join('\n')).toContain('"how":"snap","entries"')
  const reader = await ensemble.client(4)
  reader.sync(1)
  await ensemble.receive(reader, 1)
  expect(ensemble.server(4).stats().nodes).toBe(ensemble.server(2).stats().nodes)
})

it('sessions of an observer are kept alive, move, and expire through the follower', async () => {
  const ensemble = await start(4)
  const [connected, disconnected] = [
    await ensemble.client(4, { timeout: 4000 }),
    await ensemble.client(4, { timeout: 4000 }),
  ]
  connected.create(1, '/stays', 1)
  disconnected.create(1, '/goes', 1)
  await ensemble.receive(connected, 1)
  await ensemble.receive(disconnected, 1)
  disconnected.connection.destroy()
  for (let waited = 0; waited < 12_000; waited += 500) {
    connected.ask(-2, OpCode.ping)
    await ensemble.advance(500)
  }
  connected.takeReceived()
  connected.read(2, OpCode.exists, '/stays')
  connected.read(3, OpCode.exists, '/goes')
  expect(await ensemble.receive(connected, 2)).toEqual(['2:0', '3:-101'])
  // To the follower, and back to the observer.
  const second = await ensemble.client(1, { timeout: 4000, resume: connected.session! })
  expect(second.session!.sessionId).toBe(connected.session!.sessionId)
  const third = await ensemble.client(4, { timeout: 4000, resume: connected.session! })
  third.create(5, '/third', 1)
  expect(await ensemble.receive(third, 1)).toEqual(['5:0'])
  // An expired session is refused.
  const refused = await ensemble.client(4, { resume: disconnected.session! })
  expect(refused.session!.timeOut).toBe(0)
})

it('requests over the former route of a moved session are rejected, of an observer or of the follower', async () => {
  const ensemble = await start(5)
  const first = await ensemble.client(4)
  expect(await ensemble.create(first, '/a')).toBe('1:0')
  // Former clients keep their connections open, like a client whose packets are delayed.
  let before = first
  for (const [round, member] of [1, 5, 4, 1, 4].entries()) {
    const next = await ensemble.client(member, { resume: first.session! })
    before.create(10, `/late${round}`)
    await ensemble.until('the former connection is closed', () => before.closed)
    expect(before.takeReceived()).toEqual([])
    next.sync(11)
    next.read(12, OpCode.exists, `/late${round}`)
    next.create(13, `/new${round}`)
    expect(await ensemble.receive(next, 3)).toEqual(['11:0', '12:-101', '13:0'])
    before = next
  }
  expect([await observersOf(ensemble, 1), before.closed]).toEqual([2, false])
})

it('an observer whose follower is lost connects to the leader, and later to the follower again', async () => {
  const ensemble = await start(4)
  await ensemble.member(1).crash()
  await ensemble.until(
    'the leader has it',
    () => ensemble.server(4).serving && ensemble.server(4).leader === 3,
  )
  await ensemble.until('it serves again', () => ensemble.server(4).serving)
  expect(await observersOf(ensemble, 3)).toBe(1)
  const client = await ensemble.client(4)
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  await ensemble.startServing(1)
  await ensemble.restart(4)
  expect(await observersOf(ensemble, 1)).toBe(1)
  expect(await observersOf(ensemble, 3)).toBe(0)
})

it('a follower that loses its role closes the connections of its observers', async () => {
  const ensemble = await start(5)
  expect(await observersOf(ensemble, 1)).toBe(2)
  await ensemble.member(3).crash()
  await ensemble.until('a new leader', () => ensemble.leader === 2)
  await ensemble.allServe()
  expect(await observersOf(ensemble, 1)).toBe(2)
  const client = await ensemble.client(5)
  expect(await ensemble.create(client, '/later')).toBe('1:0')
})

it('a follower continues without the observer port when another process has it', async () => {
  const ensemble = new Ensemble(3)
  await ensemble.network.listen({ port: PORT }, () => {})
  giveMasterPort(ensemble, 1)
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.until('the error in the log', () =>
    ensemble.lines.some((line) => line.includes('the port cannot be bound')),
  )
  expect(ensemble.server(1).role).toBe('following')
  expect(ensemble.server(1).serving).toBe(true)
})

it('an observer master sends its observers a committed configuration with the designated leader', async () => {
  const ensemble = await start(4, 1, { reconfigEnabled: true, skipAcl: true })
  const client = await ensemble.client(2)
  client.reconfigure(1, { leaving: '3' })
  expect(await ensemble.receive(client, 1)).toEqual(['1:0'])
  await ensemble.until('a leader of two', () => ensemble.leader === 2 || ensemble.leader === 1)
  await ensemble.allServe()
  const reader = await ensemble.client(4)
  reader.read(1, OpCode.getData, '/zookeeper/config')
  await ensemble.until('the reply', () => reader.frames.length > 0)
  const text = new TextDecoder().decode(reader.replies()[0]!.body.buffer() ?? undefined)
  expect(text).not.toContain('server.3=')
  expect(text).toContain('server.1=')
})

it('an observer that connects is sent the active configuration, not a proposed one', async () => {
  const ensemble = await start(4, 1, { reconfigEnabled: true, skipAcl: true })
  await ensemble.member(4).crash()
  const client = await ensemble.client(3)
  const releases = [2, 3].map((id) => holdWrites(ensemble.member(id).disk))
  client.reconfigure(1, { joining: 'server.4=127.0.0.1:2004:3004:participant;127.0.0.1:4004' })
  let isProposed = false
  for (let waited = 0; !isProposed && waited < 5000; waited += 100) {
    await ensemble.advance(100)
    isProposed = await ensemble.member(1).disk.exists('/data/zoo.cfg.dynamic.next')
  }
  expect(isProposed).toBe(true)
  await ensemble.startServing(4)
  expect([ensemble.server(4).role, await observersOf(ensemble, 1)]).toEqual(['observing', 1])
  for (const release of releases) release()
  await ensemble.until('4 has a voice', () => ensemble.server(4).role === 'following')
})
