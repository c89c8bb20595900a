import { CreateMode, ErrorCode, OPEN_ACL_UNSAFE, OpCode, Perms, writeCreateRequest } from '@zabra/protocol'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { parseConfiguration, printConfiguration } from '../core/quorum/index.ts'
import { RawClient } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

it('three members elect a leader, replicate writes, and continue when the leader crashes', async () => {
  const ensemble = await Ensemble.start(3)
  expect(ensemble.leader).toBe(3)
  expect([1, 2].map((id) => ensemble.server(id).role)).toEqual(['following', 'following'])

  const client = await ensemble.client(1)
  client.create(1, '/a', 0, 'hello')
  expect(await ensemble.receive(client, 1)).toEqual(['1:0'])

  await ensemble.member(3).crash()
  await ensemble.until('a new leader', () => ensemble.leader !== undefined)
  expect(ensemble.leader).toBe(2)
  const later = await ensemble.client(1)
  later.read(1, OpCode.getData, '/a')
  later.create(2, '/b')
  expect(await ensemble.receive(later, 2)).toEqual(['1:0', '2:0'])

  await ensemble.startServing(3)
  expect(ensemble.server(3).role).toBe('following')
  expect(await ensemble.read(3, '/b')).toEqual(['1:0'])
})

it.each([1, 3])('an ACL of scheme ip is checked against the address of a client of member %i', async (id) => {
  const { ensemble, client } = await Ensemble.withClient(id)
  for (const [index, address] of ['127.0.0.1', '10.0.0.1'].entries()) {
    const acl = [{ perms: Perms.ALL, id: { scheme: 'ip', id: address } }]
    client.ask(index + 1, OpCode.create, (w) =>
      writeCreateRequest(w, { path: `/${index}`, data: null, acl, flags: CreateMode.PERSISTENT }),
    )
    client.set(index + 3, `/${index}`, 'x')
  }
  expect(await ensemble.receive(client, 4)).toEqual(['1:0', '3:0', '2:0', `4:${ErrorCode.NOAUTH}`])
})

it('a local session becomes global with its first ephemeral znode, at a follower and at the leader', async () => {
  const ensemble = await Ensemble.start(3, {
    localSessionsEnabled: true,
    localSessionsUpgradingEnabled: true,
  })
  for (const id of [1, ensemble.leader!]) {
    const client = await ensemble.client(id)
    client.create(1, `/e${id}`, CreateMode.EPHEMERAL)
    await ensemble.until('the reply', () => client.frames.length > 0)
    expect([id, client.takeReceived()]).toEqual([id, ['1:0']])
  }
})

it('closing a session that became global while the close was queued closes it on all members', async () => {
  const ensemble = await Ensemble.start(3, {
    localSessionsEnabled: true,
    localSessionsUpgradingEnabled: true,
  })
  for (const id of [1, ensemble.leader!]) {
    const client = await ensemble.client(id)
    client.sync(1)
    client.create(2, '/e', CreateMode.EPHEMERAL)
    client.ask(3, OpCode.closeSession)
    await ensemble.until('the end', () => client.closed)
    expect([id, client.takeReceived()]).toEqual([id, ['1:0', '2:0', '3:0']])
    const other = await ensemble.client(id)
    other.read(1, OpCode.exists, '/e')
    await ensemble.until('the reply', () => other.frames.length > 0)
    expect([id, other.takeReceived()]).toEqual([id, ['1:-101']])
  }
})

it('nothing is done behind the end of a local session that waits for earlier writes', async () => {
  const ensemble = await Ensemble.start(3, {
    localSessionsEnabled: true,
    localSessionsUpgradingEnabled: true,
  })
  for (const id of [(ensemble.leader! % 3) + 1, ensemble.leader!]) {
    const client = await ensemble.client(id)
    client.batch(() => {
      client.create(1, `/${id}`)
      client.ask(2, OpCode.closeSession)
      client.create(3, '/e', CreateMode.EPHEMERAL)
    })
    await ensemble.until('the end', () => client.closed)
    expect([id, client.takeReceived(), ensemble.member(id).failure]).toEqual([id, ['1:0', '2:0'], undefined])
  }
})

it('an observer applies commits, forwards writes, and looks for a leader when the quorum is lost', async () => {
  const ensemble = await Ensemble.start(4, { observers: [4] })
  expect(ensemble.server(4).role).toBe('observing')
  const [client, watcher] = [await ensemble.client(4), await ensemble.client(4)]
  watcher.read(1, OpCode.exists, '/a', true)
  expect(await ensemble.receive(watcher, 1)).toEqual(['1:-101'])
  client.create(1, '/a', 1, 'x')
  client.read(2, OpCode.getData, '/a')
  client.sync(3)
  expect(await ensemble.receive(client, 3)).toEqual(['1:0', '2:0', '3:0'])
  expect(watcher.takeReceived()).toEqual(['event 1 /a'])

  // All of it is durable on the observer.
  await ensemble.restart(4)
  const later = await ensemble.client(4)
  later.read(1, OpCode.getData, '/a')
  expect(await ensemble.receive(later, 1)).toEqual(['1:0'])
  // Without a quorum of voters the observer has no leader.
  await ensemble.member(1).crash()
  await ensemble.member(2).crash()
  await ensemble.until('the end of the quorum', () => ensemble.server(4).role === 'looking' || later.closed)
  expect(ensemble.leader).toBe(undefined)
})

it('a session that moves to another member continues there, and its former connection is closed', async () => {
  const ensemble = await Ensemble.start(3)
  const first = await ensemble.client(1, { timeout: 20_000 })
  first.create(1, '/mine', 1)
  expect(await ensemble.receive(first, 1)).toEqual(['1:0'])
  const second = await ensemble.client(2, { timeout: 20_000, resume: first.session! })
  expect(second.session!.sessionId).toBe(first.session!.sessionId)
  // As with Apache ZooKeeper a connection whose session has moved is closed without an answer.
  first.create(2, '/late')
  expect(await ensemble.receive(first, 1)).toEqual([])
  expect(first.closed).toBe(true)
  expect(await ensemble.create(second, '/here')).toBe('1:0')
  // The same at the leader itself.
  const third = await ensemble.client(3, { timeout: 20_000, resume: first.session! })
  second.create(2, '/late')
  expect(await ensemble.receive(second, 1)).toEqual([])
  third.ask(1, OpCode.closeSession)
  expect(await ensemble.receive(third, 1)).toEqual(['1:0'])
  expect(await ensemble.read(1, '/mine')).toEqual(['1:-101'])
  // A closed session cannot be resumed.
  const refused = await ensemble.client(2, { resume: first.session! })
  expect(refused.session!.timeOut).toBe(0)
})

it('the next leader expires the sessions of disconnected clients, and no others', async () => {
  const ensemble = await Ensemble.start(3)
  const [connected, disconnected] = [
    await ensemble.client(1, { timeout: 4000 }),
    await ensemble.client(1, { timeout: 4000 }),
  ]
  connected.create(1, '/stays', 1)
  disconnected.create(1, '/goes', 1)
  await ensemble.receive(connected, 1)
  disconnected.connection.destroy()
  await ensemble.member(3).crash()
  await ensemble.until('a new leader', () => ensemble.leader !== undefined)
  const back = await ensemble.client(2, { timeout: 4000, resume: connected.session! })
  for (let waited = 0; waited < 9000; waited += 500) {
    back.ask(-2, OpCode.ping)
    await ensemble.advance(500)
  }
  back.takeReceived()
  back.read(2, OpCode.exists, '/stays')
  back.read(3, OpCode.exists, '/goes')
  expect(await ensemble.receive(back, 2)).toEqual(['2:0', '3:-101'])
})

it('a leader that serves no clients expires sessions, and removes empty containers', async () => {
  const ensemble = new Ensemble(3, { leaderServes: false, containerCheckIntervalMs: 1000 })
  for (const member of ensemble.members.values()) await member.start()
  const followers = (): number[] =>
    [...ensemble.members.keys()].filter((id) => ensemble.server(id).role === 'following')
  await ensemble.until('two members to serve', () => ensemble.running.filter((s) => s.serving).length === 2)
  const [first, second] = followers()
  const gone = await ensemble.client(first!, { timeout: 4000 })
  gone.create(1, '/ephemeral', CreateMode.EPHEMERAL)
  const container = { path: '/container', data: null, acl: OPEN_ACL_UNSAFE, flags: CreateMode.CONTAINER }
  gone.ask(2, OpCode.createContainer, (w) => writeCreateRequest(w, container))
  gone.create(3, '/container/child')
  gone.delete(4, '/container/child')
  expect(await ensemble.receive(gone, 4)).toEqual(['1:0', '2:0', '3:0', '4:0'])
  gone.connection.destroy()
  await ensemble.advance(9000)
  expect(await ensemble.read(second!, '/ephemeral', '/container')).toEqual(['1:-101', '2:-101'])
})

it('a leader that is closed hands leadership over', async () => {
  const { ensemble, client } = await Ensemble.withClient(1)
  await ensemble.create(client, '/a')
  const stopping = ensemble.member(3).stop()
  await ensemble.until('another leader', () => ensemble.leader === 2)
  await stopping
  expect(ensemble.lines.join('\n')).toContain('leadership is transferred')
  await ensemble.member(3).start()
  await ensemble.until(
    'server 3 to serve again',
    () => ensemble.server(3).role === 'following' && ensemble.server(3).serving,
  )
})

it('a leader leaves its role when no member takes over leadership and requests have arrived meanwhile', async () => {
  const { ensemble, client } = await Ensemble.withClient(3)
  const { clock } = ensemble
  const slowly = (): Promise<void> => new Promise((done) => void clock.after(4000, 'slow disk', done))
  for (const id of [1, 2]) ensemble.member(id).disk.beforeWrite = slowly
  client.create(1, '/first')
  await ensemble.advance(1000)
  client.create(2, '/second')
  await ensemble.advance(500)
  // The writes in flight take longer than a transfer of leadership may.
  await ensemble.command(3, 'ydld')
  client.create(3, '/third')
  client.sync(4)
  await ensemble.until('the end of the connection', () => client.closed)
  expect(client.takeReceived()).toEqual(['1:0'])
  expect(
    ensemble.lines.filter((line) => line.includes('3 info This server is not leading any more')),
  ).toEqual([expect.stringContaining('no member has taken over leadership')])
  for (const id of [1, 2]) ensemble.member(id).disk.beforeWrite = undefined
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
})

it('a leader yields leadership on ydld and becomes a follower', async () => {
  const ensemble = await Ensemble.start(3)
  expect(await ensemble.command(3, 'ydld')).toContain('Sent yield leadership request to leader.')
  await ensemble.until('another leader', () => ensemble.leader === 2)
  await ensemble.allServe()
  expect(ensemble.server(3).role).toBe('following')
})

it('yieldLeadership hands leadership over on a leader with a synced quorum of others, and returns false elsewhere', async () => {
  const ensemble = await Ensemble.start(3)
  expect(ensemble.server(2).yieldLeadership()).toBe(false)
  await ensemble.member(1).crash()
  expect(ensemble.server(3).yieldLeadership()).toBe(false)
  await ensemble.member(1).start()
  await ensemble.allServe()
  expect(ensemble.server(3).yieldLeadership()).toBe(true)
  await ensemble.until('another leader', () => ensemble.leader === 2)
  await ensemble.until('server 3 to serve again', () => ensemble.server(3).serving)
  expect(ensemble.server(3).role).toBe('following')
})

it('a transaction that a leader logged without a quorum is not committed', async () => {
  const { ensemble, client } = await Ensemble.withClient(3)
  expect(await ensemble.create(client, '/kept')).toBe('1:0')
  await ensemble.member(1).crash()
  await ensemble.member(2).crash()
  client.create(2, '/lost')
  await ensemble.until('the end of the leadership', () => ensemble.server(3).role !== 'leading')
  await ensemble.until('the end of the connection', () => client.closed)
  expect(client.takeReceived()).toEqual([])
  await ensemble.member(3).crash()
  await ensemble.member(1).start()
  await ensemble.member(2).start()
  await ensemble.until('a leader', () => ensemble.leader === 2)
  await ensemble.startServing(3)
  expect(await ensemble.read(3, '/kept', '/lost')).toEqual(['1:0', '2:-101'])
})

it('a member whose log was truncated does not pass the truncated transaction on when it leads later', async () => {
  const { ensemble, client } = await Ensemble.withClient(3, {}, { truncateFromBytes: 0 })
  await ensemble.create(client, '/kept')
  for (const id of [1, 2]) await ensemble.member(id).crash()
  client.create(2, '/lost')
  await ensemble.until('the end of the leadership', () => ensemble.server(3).role !== 'leading')
  await ensemble.member(3).crash()
  for (const id of [1, 2]) await ensemble.member(id).start()
  await ensemble.until('a leader', () => ensemble.leader === 2)
  await ensemble.startServing(3)
  expect(ensemble.lines.join('\n')).toMatch(/ 3 info The leader brings this server up to date .*trunc/)
  await ensemble.member(1).crash()
  const writer = await ensemble.client(2)
  await ensemble.create(writer, '/new')
  await ensemble.member(2).crash()
  await ensemble.member(1).start()
  await ensemble.until('both of them behind 3', () => ensemble.leader === 3 && ensemble.server(1).serving)
  const reader = await ensemble.client(1)
  for (const [xid, path] of ['/kept', '/lost', '/new'].entries()) reader.read(xid, OpCode.exists, path)
  expect(await ensemble.receive(reader, 3)).toEqual(['0:0', '1:-101', '2:0'])
})

it('a member without a leader serves read-only clients when readOnlyModeEnabled is set', async () => {
  const { ensemble, client } = await Ensemble.withClient(1, {}, { readOnlyModeEnabled: true })
  await ensemble.create(client, '/a')
  await ensemble.member(2).crash()
  await ensemble.member(3).crash()
  await ensemble.until('read-only mode', () => ensemble.server(1).role === 'read-only', 60_000)
  const reader = await ensemble.client(1, { readOnly: true })
  expect(reader.session!.readOnly).toBe(true)
  reader.read(1, OpCode.getData, '/a')
  reader.create(2, '/b')
  expect(await ensemble.receive(reader, 2)).toEqual(['1:0', '2:-119'])
  expect(await ensemble.command(1, 'isro')).toBe('ro')
  await ensemble.member(3).start()
  await ensemble.until('a leader', () => ensemble.leader === 3)
  await ensemble.until(
    'the follower',
    () => ensemble.server(1).role === 'following' && ensemble.server(1).serving,
  )
  expect(reader.closed).toBe(true)
  expect(await ensemble.command(1, 'isro')).toBe('rw')
})

it('a member between two roles answers four-letter commands and refuses clients', async () => {
  const ensemble = new Ensemble(3)
  await ensemble.member(1).start()
  expect(await ensemble.command(1, 'srvr')).toBe(
    'This ZooKeeper instance is not currently serving requests\n',
  )
  expect(await ensemble.command(1, 'ruok')).toBe('imok')
  await expect(ensemble.client(1)).rejects.toThrow('refused')
})

it('a follower whose disk fails stops, and the others continue', async () => {
  const ensemble = await Ensemble.start(3)
  ensemble.member(1).disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
  const client = await ensemble.client(3)
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  await ensemble.until('the end of 1', () => ensemble.member(1).failure !== undefined)
  expect(String(ensemble.member(1).failure)).toContain('EIO')
})

it('the ensemble continues without a member whose disk is full, and the member follows again when there is space', async () => {
  const ensemble = await Ensemble.start(3)
  for (const id of [1, 3]) {
    const { disk } = ensemble.member(id)
    disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    const client = await ensemble.client(2)
    client.create(1, `/while-${id}`)
    await ensemble.until('a majority that writes', () => client.frames.length > 0 || client.closed)
    await ensemble.advance(5000)
    expect(ensemble.member(id).failure).toBe(undefined)
    expect(ensemble.leader).toBe(id === 1 ? 3 : 2)
    disk.injectFault = undefined
    await ensemble.until('the member', () => ensemble.server(id).serving)
    const later = await ensemble.client(id)
    expect(await ensemble.create(later, `/after-${id}`)).toBe('1:0')
  }
})

it('the leader drops a member whose disk hangs, and syncs it again later', async () => {
  const ensemble = await Ensemble.start(3)
  const { disk } = ensemble.member(1)
  const release = holdWrites(disk)
  const client = await ensemble.client(2, { timeout: 40_000 })
  for (let n = 1; n <= 20; n++) client.create(n, `/n${n}`)
  expect(await ensemble.receive(client, 20)).toHaveLength(20)
  await ensemble.until('its end', () => ensemble.lines.some((line) => line.includes('has not acknowledged')))
  release()
  await ensemble.until(
    'the member',
    () => ensemble.server(1).serving && ensemble.server(1).stats().nodes > 20,
  )
  expect(await ensemble.read(1, '/n20')).toEqual(['1:0'])
})

it('a member may take initLimit ticks to store what it was sent, also where the leader is established meanwhile', async () => {
  const ensemble = new Ensemble(3)
  for (const member of ensemble.members.values()) await member.start()
  const { disk } = ensemble.member(1)
  const replaceFile = disk.replaceFile.bind(disk)
  disk.replaceFile = async (path, bytes) => {
    if (path.endsWith('currentEpoch'))
      await new Promise<void>((resolve) => {
        ensemble.clock.after(7000, 'slow disk', resolve)
      })
    return replaceFile(path, bytes)
  }
  await ensemble.until('a leader', () => ensemble.leader === 3)
  await ensemble.until('the member with the slow disk', () => ensemble.server(1).serving)
  expect(ensemble.lines.filter((line) => line.includes('is lost'))).toEqual([])
})

it('observers beyond maxConcurrentSnapSyncs reconnect until they are sent a snapshot', async () => {
  const ensemble = await Ensemble.start(3, { forceSnapshotSync: true, maxConcurrentSnapSyncs: 1 })
  const known = ensemble.member(1).settings.ensemble!
  const lines = [4, 5, 6].map((id) => `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:observer`)
  const all = parseConfiguration([...printConfiguration(known).split('\n').slice(0, -1), ...lines].join('\n'))
  for (const id of [1, 2, 3]) {
    await ensemble.member(id).stop()
    ensemble.member(id).settings = { ...ensemble.member(id).settings, ensemble: all }
    await ensemble.member(id).start()
  }
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
  for (const id of [4, 5, 6]) await ensemble.join(id, all)
  await ensemble.until('all observers', () => [4, 5, 6].every((id) => ensemble.server(id).serving))
})

it('requests on the former connection of a resumed session are dropped', async () => {
  const ensemble = await Ensemble.start(3)
  const first = await ensemble.client(1)
  const again = new RawClient(ensemble, await ensemble.network.connect({ host: 'x', port: 4001 }))
  again.handshake({ resume: first.session! })
  first.create(1, '/late')
  await ensemble.until('the session', () => again.frames.length > 0)
  expect(again.takeConnectResponse()!.sessionId).toBe(first.session!.sessionId)
  again.read(1, OpCode.exists, '/late')
  expect(await ensemble.receive(again, 1)).toEqual(['1:-101'])
  expect(first.closed).toBe(true)
})
