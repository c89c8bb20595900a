import { OpCode, writeAuthPacket } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { RawClient } from '../testing/test-server.ts'
import { EnsembleFixture, type Learner } from './testing/ensemble-fixture.ts'

/** Bytes of all writes and syncs in flight, at which further ones wait. */
const ROOM = 64 << 20

/** A client of a follower, and the room of that for writes and syncs. */
async function withFollower(options?: Parameters<typeof EnsembleFixture.start>[0]) {
  const ensemble = await EnsembleFixture.start(options)
  const learner = ensemble.learners[0]!
  const client = await learner.fixture.connect()
  const { pipelineRoom } = learner.fixture.clientService
  return {
    ensemble,
    learner,
    client,
    room: pipelineRoom,
    reconnect: () => learner.fixture.connect({ resume: client.session! }),
    /** Sends writes of 100 KB while none is committed: six are in flight and the others wait, some of the twenty in the socket. */
    sendBacklog: (writes = 20) => {
      ensemble.holdsCommits = true
      for (let xid = 1; xid <= writes; xid++) client.set(xid, '/', 'x'.repeat(100_000))
      return ensemble.settle()
    },
    /** Takes all room, as other connections do. */
    fill: () => pipelineRoom.take(ROOM),
  }
}

/** Sends a write that cannot be decoded, which a follower refuses. */
const sendMalformed = (client: RawClient, xid: number, bytes = 1): void =>
  client.ask(xid, OpCode.setData, (w) => w.raw(new Uint8Array(bytes).fill(0x7f)))

it('a follower replies to a refused write behind others of its client while there is no room for more', async () => {
  const { ensemble, client, fill } = await withFollower()
  ensemble.holdsCommits = true
  client.create(1, '/a')
  sendMalformed(client, 2)
  await ensemble.settle()
  fill()
  await ensemble.commitHeld()
  expect(client.takeReceived()).toEqual(['1:0', '2:-5'])
})

it('a refused write takes no room', async () => {
  const { ensemble, client, room } = await withFollower()
  ensemble.holdsCommits = true
  client.create(1, '/a')
  await ensemble.settle()
  const { bytes } = room
  expect(bytes).toBeGreaterThan(0)
  sendMalformed(client, 2, 100_000)
  await ensemble.settle()
  expect(room.bytes).toBe(bytes)
})

it('a client ends its local session while there is no room for writes', async () => {
  const { ensemble, client, fill } = await withFollower({ localSessions: true })
  fill()
  client.ask(1, OpCode.closeSession)
  await ensemble.settle()
  expect(client.takeReceived()).toEqual(['1:0'])
})

it('a write of a session that has moved takes no room', async () => {
  const { ensemble, learner, client, room } = await withFollower({ hasObservers: true })
  await ensemble.settle()
  expect(room.bytes).toBe(0)
  moveAway(learner, client)
  await ensemble.settle()
  client.set(1, '/', 'x')
  await ensemble.settle()
  expect([client.closed, room.bytes]).toEqual([true, 0])
})

it('the end of a session that has moved takes no room', async () => {
  const { ensemble, learner, client, room } = await withFollower({ hasObservers: true })
  moveAway(learner, client)
  await ensemble.settle()
  client.ask(1, OpCode.closeSession)
  await ensemble.settle()
  expect([client.closed, room.bytes]).toEqual([true, 0])
})

it('requests in flight leave their room with their results, also where their connection was closed before', async () => {
  const { ensemble, client, room, reconnect } = await withFollower()
  ensemble.holdsCommits = ensemble.holdsConfirms = true
  client.create(1, '/a')
  client.set(2, '/a', 'x'.repeat(1000))
  client.sync(3)
  client.create(4, '/waits-for-the-sync')
  await ensemble.settle()
  const { bytes } = room
  expect(bytes).toBeGreaterThan(1000)
  client.connection.destroy()
  await ensemble.settle()
  expect(room.bytes).toBe(bytes)
  const next = await reconnect()
  next.set(1, '/a', 'x')
  await ensemble.settle()
  expect(room.bytes).toBeGreaterThan(bytes)
  ensemble.commitNext()
  await ensemble.settle()
  expect(room.bytes).toBeGreaterThan(1000)
  ensemble.holdsConfirms = false
  await ensemble.commitHeld()
  expect([room.bytes, next.takeReceived()]).toEqual([0, ['1:0']])
})

it('requests in flight leave their room where their connection closes behind its last reply', async () => {
  const { ensemble, client, room } = await withFollower()
  ensemble.holdsCommits = true
  for (let xid = 1; xid <= 3; xid++) client.create(xid, `/${xid}`)
  // A login that fails closes it after its reply.
  client.ask(-4, OpCode.auth, (w) => writeAuthPacket(w, { type: 0, scheme: 'unknown', auth: null }))
  await ensemble.settle()
  await ensemble.commitHeld()
  client.connection.destroy()
  await ensemble.settle()
  expect(room.bytes).toBe(0)
})

it('requests in flight of a session that moves leave their room', async () => {
  const { ensemble, client, room } = await withFollower()
  ensemble.holdsCommits = true
  for (let xid = 1; xid <= 3; xid++) client.create(xid, `/${xid}`)
  const { session } = client
  ensemble.leader.clientService.runTurn(() =>
    ensemble.leader.pipeline.revalidateForLearner(
      ensemble.learners[1]!,
      session!.sessionId,
      10_000,
      () => {},
    ),
  )
  await ensemble.settle()
  expect(room.bytes).toBeGreaterThan(0)
  await ensemble.commitHeld()
  expect([client.closed, room.bytes]).toEqual([true, 0])
})

it('requests that a leader loses to a full disk leave their room, that of a session that ends included', async () => {
  const ensemble = await EnsembleFixture.start()
  const { clientService, pipeline } = ensemble.leader
  const { pipelineRoom } = clientService
  const [client, ending] = [await ensemble.leader.connect(), await ensemble.leader.connect()]
  ensemble.holdsCommits = true
  client.create(1, '/a')
  client.create(2, '/b')
  ending.create(1, '/c')
  ending.ask(2, OpCode.closeSession)
  await ensemble.settle()
  expect(pipelineRoom.bytes).toBeGreaterThan(0)
  clientService.runTurn(() => pipeline.discardAfter(ensemble.leader.tree.lastZxid))
  expect(pipelineRoom.bytes).toBe(0)
  expect([await client.received(), ending.closed]).toEqual([['1:-1', '2:-1'], true])
})

it('a large write starts when it is its turn for room, although other connections wait for a share of time', async () => {
  const { ensemble, learner, client, room } = await withFollower()
  const { clientService } = learner.fixture
  // A connection that takes all room in each of its turns.
  const greedy = {
    requests: { process: () => room.admits(greedy) && (room.take(ROOM), room.admits(greedy)) },
  }
  greedy.requests.process()
  client.set(1, '/', 'x'.repeat(100_000))
  await ensemble.settle()
  const replies: string[] = []
  for (let round = 0; round < 5; round++) {
    clientService.runTurn(() => {
      // Each takes more than a share of a turn.
      for (let count = 0; count < 2; count++)
        clientService.turnShares.wait({ proceed: () => ensemble.clock.advance(2) })
      room.release(ROOM)
    })
    await ensemble.settle()
    replies.push(...client.takeReceived())
  }
  expect(replies).toEqual(['1:0'])
})

/** Lets a session continue at an observer of a follower. */
const moveAway = ({ fixture }: Learner, { session }: RawClient): void =>
  fixture.clientService.runTurn(() =>
    fixture.pipeline.revalidate(session!.sessionId, 10_000, { onRevalidated() {} } as never, 5),
  )

it('a follower touches the session of a client with a backlog, unless that does not read its replies', async () => {
  const { ensemble, learner, client, sendBacklog } = await withFollower()
  const { clientService } = learner.fixture
  const touched = (): bigint[] => {
    learner.sessions.takeTouched()
    clientService.touchThrottled()
    return learner.sessions.takeTouched().map(({ id }) => id)
  }
  expect(touched()).toEqual([])
  await sendBacklog()
  const { sessionId } = client.session!
  expect(touched()).toEqual([sessionId])
  const { flow } = clientService.connections.ofSession(sessionId)!
  flow.isBackpressured = true
  expect(touched()).toEqual([])
  flow.isBackpressured = false
  await ensemble.commitHeld()
  expect([touched(), clientService.backlogged.size]).toEqual([[], 0])
})

it('a connection that is closed has no backlog and waits for no room', async () => {
  const { ensemble, learner, client, room, fill, sendBacklog } = await withFollower()
  const { backlogged } = learner.fixture.clientService
  const other = await learner.fixture.connect()
  await sendBacklog()
  fill()
  other.set(1, '/', 'x')
  await ensemble.settle()
  expect([backlogged.size, room.size]).toEqual([1, 1])
  for (const { connection } of [client, other]) connection.destroy()
  await ensemble.settle()
  expect([backlogged.size, room.size]).toEqual([0, 0])
})

it('a write that waited takes room as others do once it starts', async () => {
  const { ensemble, room, sendBacklog } = await withFollower()
  await sendBacklog(10)
  const { bytes } = room
  ensemble.commitNext()
  await ensemble.settle()
  expect(room.bytes).toBe(bytes)
})
