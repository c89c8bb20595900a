import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { PacketType } from './packets.ts'
import { LeaderHarness } from './testing/leader-harness.ts'

const z = makeZxid
const three = 'server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6'
const five = `${three}\nserver.4=h:7:8\nserver.5=h:9:10`
const observed = `${three}\nserver.7=h:7:8:observer`
const grouped = `${five}\nserver.6=h:11:12\ngroup.1=1:2:3\ngroup.2=4:5:6\nweight.6=0`

const led = (configuration = three, followers = [1], given = {}): LeaderHarness => {
  const desk = new LeaderHarness(configuration, given)
  desk.lead(...followers)
  return desk
}

describe('a leader that was elected', () => {
  it('goes through the steps of the first election of three', () => {
    const desk = new LeaderHarness(three)
    desk.step({ type: 'start' })
    desk.identify(2)
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 1'])
    desk.stored('acceptedEpoch', 1)
    expect(desk.takeLog()).toEqual(['leaderInfo 100000000 to 2'])
    desk.ackEpoch(2)
    expect(desk.takeLog()).toEqual(['store currentEpoch 1'])
    desk.stored('currentEpoch', 1)
    expect(desk.takeLog()).toEqual(['diff 0 to 2', 'newLeader 100000000 to 2', 'joined 2'])
    desk.ack(2, z(1, 0))
    expect(desk.takeLog()).toEqual(['lead 1 from 100000000', 'upToDate -1 to 2'])
    desk.ack(2, z(1, 0))
    expect(desk.takeLog()).toEqual([])
    desk.identify(1)
    desk.ackEpoch(1)
    desk.ack(1, z(1, 0))
    expect(desk.takeLog()).toEqual([
      'leaderInfo 100000000 to 1',
      'diff 0 to 1',
      'newLeader 100000000 to 1',
      'joined 1',
      'upToDate -1 to 1',
    ])
  })

  it('is its own quorum when it is the only voter', () => {
    const desk = new LeaderHarness('server.3=h:1:2')
    desk.step({ type: 'start' })
    desk.stored('acceptedEpoch', 1)
    desk.stored('currentEpoch', 1)
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 1', 'store currentEpoch 1', 'lead 1 from 100000000'])
    desk.propose(1)
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual(['propose 100000001 to ', 'commit 100000001 to '])
  })

  it('leads in an epoch after all that were accepted by those who came in time, observers too', () => {
    const desk = new LeaderHarness(observed, { acceptedEpoch: 4, currentEpoch: 3 })
    desk.step({ type: 'start' })
    desk.identify(7, 8, { observer: true })
    expect(desk.takeLog()).toEqual([])
    desk.identify(1, 6)
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 9'])
  })

  it('tells nobody of an epoch before it is on disk, and syncs nobody before it has entered it', () => {
    const desk = new LeaderHarness(five)
    desk.step({ type: 'start' })
    for (const id of [1, 2, 4]) desk.identify(id)
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 1'])
    desk.stored('acceptedEpoch', 1)
    for (const id of [1, 2, 4]) desk.ackEpoch(id)
    expect(desk.takeLog().filter((line) => line.startsWith('diff'))).toEqual([])
    desk.stored('currentEpoch', 1)
    expect(desk.takeLog().filter((line) => line.startsWith('diff'))).toEqual([
      'diff 0 to 1',
      'diff 0 to 2',
      'diff 0 to 4',
    ])
  })

  it('does not count a promise that was given before, nor one of who does not trust its data', () => {
    const desk = new LeaderHarness(five)
    desk.step({ type: 'start' })
    for (const id of [1, 2, 4]) desk.identify(id)
    desk.stored('acceptedEpoch', 1)
    desk.takeLog()
    desk.ackEpoch(1, 0, -1)
    desk.ackEpoch(2, -1, 0)
    desk.ackEpoch(4)
    expect(desk.takeLog()).toEqual([])
  })

  it('counts no word of a voter that comes as an observer', () => {
    const desk = new LeaderHarness(three)
    desk.step({ type: 'start' })
    desk.identify(1, 0, { observer: true })
    expect(desk.takeLog()).toEqual([])
    desk.identify(2)
    desk.stored('acceptedEpoch', 1)
    desk.takeLog()
    desk.ackEpoch(1)
    expect(desk.takeLog()).toEqual([])
    desk.ackEpoch(2)
    desk.stored('currentEpoch', 1)
    desk.takeLog()
    desk.ack(1, z(1, 0))
    expect(desk.takeLog()).toEqual([])
    desk.ack(2, z(1, 0))
    expect(desk.takeLog()[0]).toBe('lead 1 from 100000000')
    desk.propose(1)
    desk.leader.markDurable(z(1, 1))
    desk.ack(1, z(1, 1))
    expect(desk.takeLog()).toEqual(['propose 100000001 to 2'])
    desk.ack(2, z(1, 1))
    expect(desk.takeLog()).toEqual(['commit 100000001 to 2 inform 1'])
  })

  it('counts no ACK of NEWLEADER of another epoch, nor one that comes before NEWLEADER was sent', () => {
    const desk = new LeaderHarness(three, { acceptedEpoch: 4, currentEpoch: 4 })
    desk.forceSnapshots()
    desk.step({ type: 'start' })
    for (const id of [1, 2]) desk.identify(id)
    desk.stored('acceptedEpoch', 5)
    for (const id of [1, 2]) desk.ackEpoch(id)
    desk.stored('currentEpoch', 5)
    desk.step({ type: 'streamed', to: 1 })
    desk.takeLog()
    desk.ack(1, z(4, 0))
    desk.ack(2, z(5, 0))
    expect(desk.takeLog().filter((line) => !line.startsWith('left'))).toEqual([
      'drop 1: it acknowledges 400000000 instead of, or before, NEWLEADER of epoch 5',
      'drop 2: it acknowledges 500000000 instead of, or before, NEWLEADER of epoch 5',
    ])
  })

  it('refuses who is ahead of it while nobody has found it good enough, by epoch first', () => {
    const desk = new LeaderHarness(five, { lastZxid: z(2, 5), currentEpoch: 2, acceptedEpoch: 2 })
    desk.step({ type: 'start' })
    for (const id of [1, 2, 4]) desk.identify(id, 2)
    desk.stored('acceptedEpoch', 3)
    desk.takeLog()
    desk.ackEpoch(1, z(2, 6), 2)
    desk.ackEpoch(2, z(2, 4), 3)
    expect(desk.takeLog()).toEqual([
      'drop 1: it is ahead of this leader, in epoch 2 at 200000006',
      'drop 2: it is ahead of this leader, in epoch 3 at 200000004',
    ])
    desk.ackEpoch(4, z(2, 5), 2)
    desk.identify(5, 2)
    desk.ackEpoch(5, z(2, 1), 2)
    desk.takeLog()
    desk.stored('currentEpoch', 3)
    // Late and ahead: it has a tail that nobody committed.
    desk.identify(101, 3)
    desk.ackEpoch(101, z(2, 9), -1)
    expect(desk.takeLog()).toContain('trunc 200000005 to 101')
  })

  it.each([
    ['its own id', { server: 3 }, 0, /server 3, which is this one/],
    ['an old protocol', { protocol: 1 }, 0, /protocol is 1, older/],
    ['a newer configuration', { configVersion: z(1, 1) }, 0, /configuration 100000001 is newer than 0/],
    ['an epoch at the end of all', {}, 0x1f_fffe, /epoch 2097150 is not/],
  ])('refuses %s', (_what, given, epoch, reason) => {
    const desk = new LeaderHarness(three)
    desk.step({ type: 'start' })
    desk.identify(1, epoch, given)
    expect(desk.takeLog()).toEqual([expect.stringMatching(reason)])
  })

  it('does not lead beyond the last epoch', () => {
    const desk = new LeaderHarness(three, { acceptedEpoch: 0x1f_fffe })
    desk.step({ type: 'start' })
    desk.identify(1)
    expect(desk.takeLog()).toEqual(['stop: epoch 2097151 is beyond the last one, 2097150'])
  })

  it('drops whoever does not begin with its name, speaks out of turn or sends what cannot be read', () => {
    const desk = new LeaderHarness(three)
    desk.step({ type: 'start' }, { type: 'accepted', from: 9 }, { type: 'accepted', from: 8 })
    desk.packet(9, { type: PacketType.ping })
    desk.packet(8, { type: PacketType.followerInfo, data: Uint8Array.of(1) })
    desk.identify(1)
    desk.stored('acceptedEpoch', 1)
    desk.takeLog()
    desk.packet(1, { type: PacketType.request })
    expect(desk.takeLog()).toEqual(['drop 1: request is not due while it is asked'])
  })

  it('drops one connection of a server for a later one that has promised the epoch, not for one that only says so', () => {
    const desk = led(three, [1])
    desk.identify(101, 1)
    expect(desk.takeLog()).toEqual(['leaderInfo 100000000 to 101'])
    desk.identify(201, 1)
    expect(desk.takeLog()).toEqual([
      'drop 101: the same server has come again',
      'leaderInfo 100000000 to 201',
    ])
    desk.ackEpoch(201, 0, -1)
    expect(desk.takeLog().slice(0, 2)).toEqual(['drop 1: the same server has come again', 'left 1'])
  })

  it('lets strangers keep nobody out', () => {
    const desk = new LeaderHarness(three, { maxUnidentified: 2, maxLearners: 1 })
    desk.step({ type: 'start' })
    for (const from of [50, 51, 52]) desk.step({ type: 'accepted', from })
    expect(desk.takeLog()).toEqual(['drop 50: too many connections do not say who they are'])
    desk.identify(1)
    desk.takeLog()
    desk.step({ type: 'accepted', from: 53 })
    expect(desk.takeLog()).toEqual(['drop 53: there are 1 learners already'])
  })

  it('gives up when no quorum comes in time, in each phase', () => {
    const discovery = new LeaderHarness(three)
    discovery.step({ type: 'start' })
    discovery.ticks(11)
    expect(discovery.takeLog()).toEqual(['stop: no quorum came together for discovery'])
    const sync = new LeaderHarness(three)
    sync.step({ type: 'start' })
    sync.identify(1)
    sync.stored('acceptedEpoch', 1)
    sync.ackEpoch(1)
    sync.stored('currentEpoch', 1)
    sync.takeLog()
    sync.ticks(11)
    expect(sync.takeLog()).toEqual(['stop: no quorum came together for synchronisation'])
  })

  it('needs a quorum in most groups where voices are weighed', () => {
    const desk = new LeaderHarness(grouped)
    desk.step({ type: 'start' })
    desk.identify(1)
    desk.identify(6)
    desk.identify(4)
    expect(desk.takeLog()).toEqual([])
    desk.identify(5)
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 1'])
  })

  it('goes on alone when the oracle says so, not before the other had time to come', () => {
    const desk = new LeaderHarness('server.1=h:1:2\nserver.3=h:3:4', { oracle: true })
    desk.step({ type: 'oracle', goOn: true }, { type: 'start' })
    expect(desk.takeLog()).toEqual([])
    desk.ticks(1)
    desk.stored('acceptedEpoch', 1)
    desk.stored('currentEpoch', 1)
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 1', 'store currentEpoch 1', 'lead 1 from 100000000'])
    desk.propose(1)
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog().at(-1)).toBe('commit 100000001 to ')
    desk.step({ type: 'oracle', goOn: false })
    desk.ticks(1)
    expect(desk.takeLog()).toEqual(['stop: too few followers are in step'])
  })
})

describe('a leader that leads', () => {
  it('proposes before anything is committed and commits in order, whatever order acks come in', () => {
    const desk = led(five, [1, 2])
    for (const counter of [1, 2, 3]) desk.propose(counter)
    expect(desk.takeLog()).toEqual([
      'propose 100000001 to 1,2',
      'propose 100000002 to 1,2',
      'propose 100000003 to 1,2',
    ])
    desk.ack(1, z(1, 2))
    desk.ack(2, z(1, 1))
    expect(desk.takeLog()).toEqual([])
    desk.leader.markDurable(z(1, 3))
    expect(desk.takeLog()).toEqual(['commit 100000001 to 1,2'])
    desk.ack(2, z(1, 3))
    expect(desk.takeLog()).toEqual(['commit 100000002 to 1,2'])
    desk.ack(1, z(1, 3))
    expect(desk.takeLog()).toEqual(['commit 100000003 to 1,2'])
    expect([desk.leader.outstanding, desk.window.max]).toEqual([0, z(1, 3)])
  })

  it('commits by its followers alone while its own disk is slow', () => {
    const desk = led(five, [1, 2, 4])
    desk.propose(1)
    for (const id of [1, 2, 4]) expect(desk.leader.ack(id, z(1, 1))).toBe(true)
    expect(desk.takeLog().at(-1)).toBe('commit 100000001 to 1,2,4')
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual([])
  })

  it('counts no ack of an older epoch, of an observer, of NEWLEADER, twice, or of what was not proposed', () => {
    const desk = led(observed, [1])
    desk.join(7, 0, { observer: true })
    desk.propose(1)
    desk.takeLog()
    desk.ack(7, z(1, 1))
    desk.ack(1, z(0, 1))
    desk.ack(1, z(1, 0))
    expect(desk.takeLog()).toEqual([])
    expect(desk.leader.ack(1, z(1, 2))).toBe(false)
    desk.ack(1, z(1, 2))
    expect(desk.takeLog()).toEqual(['warn: A learner sent what no learner should send now; it is ignored'])
    desk.ack(1, z(1, 1))
    desk.ack(1, z(1, 1))
    expect(desk.takeLog()).toEqual([])
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual(['commit 100000001 to 1 inform 7'])
  })

  it('proposes what comes next and nothing else', () => {
    const desk = led()
    expect(() => desk.propose(2)).toThrow('Expected 100000001, got 100000002')
    desk.propose(1)
    expect(() => desk.propose(1)).toThrow(RangeError)
    expect(() => new LeaderHarness(three).propose(1)).toThrow('Expected no proposal')
  })

  it('gives a late follower history, then what is on its way, then NEWLEADER, and everything after it', () => {
    const desk = led(five, [1, 2])
    desk.propose(1)
    for (const id of [1, 2]) desk.ack(id, z(1, 1))
    desk.leader.markDurable(z(1, 1))
    desk.propose(2)
    desk.takeLog()
    desk.identify(4, 1)
    desk.ackEpoch(4, 0, 1)
    expect(desk.takeLog()).toEqual([
      'leaderInfo 100000000 to 4',
      'diff 100000001 100000001 to 4',
      'proposal 100000002 to 4',
      'newLeader 100000000 to 4',
      'joined 4',
    ])
    desk.propose(3)
    expect(desk.takeLog()).toEqual(['propose 100000003 to 1,2,4'])
    // As releases before 3.9.2 do it: proposals are acknowledged before NEWLEADER.
    desk.ack(4, z(1, 3))
    desk.ack(1, z(1, 3))
    expect(desk.takeLog()).toEqual([])
    desk.leader.markDurable(z(1, 3))
    expect(desk.takeLog()).toEqual([])
    desk.ack(4, z(1, 0))
    expect(desk.takeLog()).toEqual([
      'commit 100000002 to 1,2,4',
      'commit 100000003 to 1,2,4',
      'upToDate -1 to 4',
    ])
  })

  it('sends NEWLEADER behind a snapshot only once that is sent, with all that was committed meanwhile before it', () => {
    const desk = led(three, [1])
    desk.forceSnapshots()
    desk.identify(2, 1)
    desk.ackEpoch(2, 0, 1)
    expect(desk.takeLog()).toEqual(['leaderInfo 100000000 to 2', 'snap to 2', 'joined 2'])
    desk.propose(1)
    desk.ack(1, z(1, 1))
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual(['propose 100000001 to 1,2', 'commit 100000001 to 1,2'])
    desk.step({ type: 'streamed', to: 2 })
    expect(desk.takeLog()).toEqual(['newLeader 100000000 to 2'])
    desk.step({ type: 'streamed', to: 2 }, { type: 'streamed', to: 9 })
    expect(desk.takeLog()).toEqual([])
  })

  it('gives a late observer history and nothing that is not committed', () => {
    const desk = led(observed, [1])
    desk.propose(1)
    desk.takeLog()
    desk.join(7, 0, { observer: true })
    expect(desk.takeLog()).toEqual([
      'leaderInfo 100000000 to 7',
      'diff 0 to 7',
      'newLeader 100000000 to 7',
      'joined 7',
      'upToDate -1 to 7',
    ])
  })

  it('forgets what a server has acknowledged when it has to cut it', () => {
    const desk = led(five, [1, 2])
    desk.propose(1)
    desk.ack(1, z(1, 1))
    desk.identify(101, 1)
    desk.ackEpoch(101, z(1, 1), -1)
    expect(desk.takeLog()).toContain('trunc 0 to 101')
    desk.leader.markDurable(z(1, 1))
    desk.ack(2, z(1, 1))
    expect(desk.takeLog()).toEqual([])
    desk.ack(101, z(1, 0))
    desk.ack(101, z(1, 1))
    expect(desk.takeLog().at(-1)).toBe('commit 100000001 to 2,101')
  })

  it('keeps what a server has acknowledged when it has gone', () => {
    const desk = led(five, [1, 2])
    desk.propose(1)
    desk.ack(1, z(1, 1))
    desk.step({ type: 'closed', from: 1 })
    desk.leader.markDurable(z(1, 1))
    desk.ack(2, z(1, 1))
    expect(desk.takeLog().at(-1)).toBe('commit 100000001 to 2')
  })

  it('hands what clients of learners ask for on', () => {
    const desk = led()
    desk.packet(1, { type: PacketType.request })
    desk.packet(1, { type: PacketType.revalidate })
    desk.packet(1, { type: PacketType.leaderInfo })
    expect(desk.takeLog()).toEqual([
      'deliver request of 1',
      'deliver revalidate of 1',
      'warn: A learner sent what no learner should send now; it is ignored',
    ])
  })

  it('pings everybody twice a tick and leaves when too few answer', () => {
    const desk = led(five, [1, 2])
    desk.ticks(1)
    expect(desk.takeLog()).toEqual(
      Array.from({ length: 2 }, () => ['ping 100000000 to 1', 'ping 100000000 to 2']).flat(),
    )
    desk.ticks(3)
    desk.pong(1)
    desk.ticks(2)
    const lines = desk.takeLog()
    expect(lines).toContain('drop 2: it was silent for too long while it was active')
    expect(lines.at(-1)).toBe('stop: too few followers are in step')
    desk.step({ type: 'halfTick' })
    expect(desk.takeLog()).toEqual([])
  })

  it('drops a follower that answers pings and leaves a proposal unacknowledged, though others go on', () => {
    const desk = led(five, [1, 2, 4])
    const drops: string[] = []
    for (let i = 1; i <= 12; i++) {
      desk.propose(i)
      for (const id of [1, 2]) desk.ack(id, z(1, i))
      if (i < 4) desk.ack(4, z(1, i))
      desk.leader.markDurable(z(1, i))
      for (const id of [1, 2, 4]) desk.pong(id)
      desk.ticks(1)
      drops.push(...desk.takeLog().filter((line) => line.startsWith('drop')))
    }
    expect(drops).toEqual([expect.stringMatching(/^drop 4: it has not acknowledged 10000000\d in time$/)])
  })

  it('lets only those ask for writes who are in step, and takes each request for a sign of life', () => {
    const desk = led(five, [1, 2])
    const asks: boolean[] = []
    const ask = (id: number): void => void asks.push(desk.leader.heartbeat(id))
    ask(4)
    desk.identify(4, 1)
    ask(4)
    desk.ackEpoch(4, 0, 1)
    ask(4)
    desk.ack(4, z(1, 0))
    ask(4)
    expect(asks).toEqual([false, false, false, true])
    desk.takeLog()
    for (let i = 0; i < 20; i++) {
      for (const id of [1, 2]) desk.pong(id)
      ask(4)
      desk.ticks(1)
    }
    expect(desk.takeLog().filter((line) => line.startsWith('drop'))).toEqual([])
  })

  it('lets a long transfer take its time while it makes progress', () => {
    const desk = led(five, [1, 2])
    desk.identify(4, 1)
    desk.ackEpoch(4, 0, 1)
    for (let i = 0; i < 30; i++) {
      for (const id of [1, 2]) desk.pong(id)
      desk.leader.heartbeat(4)
      desk.ticks(1)
    }
    expect(desk.takeLog().filter((line) => line.startsWith('drop'))).toEqual([])
    for (let i = 0; i < 16; i++) {
      for (const id of [1, 2]) desk.pong(id)
      desk.ticks(1)
    }
    expect(desk.takeLog().filter((line) => line.startsWith('drop'))).toEqual([
      'drop 4: it was silent for too long while it was syncing',
    ])
  })

  it('uses the counters of its epoch up, commits what it accepted and makes room for the next', () => {
    const desk = led(three, [1], { lastCounter: 2 })
    desk.propose(1)
    desk.propose(2)
    expect(desk.leader.canPropose).toBe(false)
    expect(() => desk.propose(3)).toThrow('Expected no proposal')
    desk.step({ type: 'halfTick' })
    desk.leader.markDurable(z(1, 2))
    desk.ack(1, z(1, 2))
    desk.takeLog()
    desk.step({ type: 'halfTick' })
    expect(desk.takeLog().at(-1)).toBe('stop: the transactions of this epoch are used up')
  })

  it('makes room for an epoch that a voter can accept which has accepted a later one', () => {
    const desk = led(three, [1])
    desk.propose(1)
    desk.takeLog()
    desk.identify(2, 4)
    expect(desk.takeLog()).toEqual(['drop 2: it has accepted epoch 4, after the 1 of this leader'])
    expect(desk.leader.canPropose).toBe(false)
    desk.leader.markDurable(z(1, 1))
    desk.ack(1, z(1, 1))
    desk.takeLog()
    desk.step({ type: 'halfTick' })
    expect(desk.takeLog().slice(-2)).toEqual([
      'store acceptedEpoch 4',
      'stop: a voter has accepted epoch 4 already',
    ])
  })

  it('does not make room for an observer or a stranger', () => {
    const desk = led(observed, [1])
    desk.identify(7, 4, { observer: true })
    desk.identify(9, 4)
    expect(desk.leader.canPropose).toBe(true)
  })
})
