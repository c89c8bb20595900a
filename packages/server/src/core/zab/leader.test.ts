import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../quorum/index.ts'
import { PacketType } from './packets.ts'
import { establishedLeader, LeaderHarness } from './testing/leader-harness.ts'

const z = makeZxid
const three = 'server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6'
const five = `${three}\nserver.4=h:7:8\nserver.5=h:9:10`
const observed = `${three}\nserver.7=h:7:8:observer`
const grouped = `${five}\nserver.6=h:11:12\ngroup.1=1:2:3\ngroup.2=4:5:6\nweight.6=0`

describe('an elected leader', () => {
  it('chooses an epoch, stores it, synchronises its learners and gets established', () => {
    const harness = new LeaderHarness(three).step({ type: 'start' })
    expect([harness.leader.phase, harness.leader.epoch]).toEqual(['discovery', -1])
    expect(harness.identify(2).takeLog()).toEqual(['store acceptedEpoch 1'])
    expect(harness.leader.epoch).toBe(1)
    expect(harness.stored('acceptedEpoch', 2).takeLog()).toEqual([])
    expect(harness.stored('acceptedEpoch', 1).takeLog()).toEqual(['leaderInfo 100000000 to 2'])
    expect(harness.stored('acceptedEpoch', 1).takeLog()).toEqual([])
    expect(harness.ackEpoch(2).takeLog()).toEqual(['store currentEpoch 1'])
    expect(harness.stored('currentEpoch', 2).takeLog()).toEqual([])
    harness.stored('currentEpoch', 1)
    expect(harness.takeLog()).toEqual(['diff 0 to 2', 'newLeader 100000000 to 2', 'joined 2'])
    expect(harness.leader.phase).toBe('synchronisation')
    expect(harness.stored('currentEpoch', 1).takeLog()).toEqual([])
    expect(harness.ack(2, z(1, 0)).takeLog()).toEqual(['lead 1 from 100000000', 'upToDate -1 to 2'])
    expect(harness.ack(2, z(1, 0)).takeLog()).toEqual([])
    harness.identify(1).ackEpoch(1)
    expect(harness.ack(1, z(1, 0)).takeLog()).toEqual([
      'leaderInfo 100000000 to 1',
      'diff 0 to 1',
      'newLeader 100000000 to 1',
      'joined 1',
      'upToDate -1 to 1',
    ])
  })

  it('leads and commits alone when it is the only voter', () => {
    const harness = new LeaderHarness('server.3=h:1:2').step({ type: 'start' })
    harness.stored('acceptedEpoch', 1)
    expect(harness.stored('currentEpoch', 1).takeLog()).toEqual([
      'store acceptedEpoch 1',
      'store currentEpoch 1',
      'lead 1 from 100000000',
    ])
    harness.propose(1)
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual(['propose 100000001 to ', 'commit 100000001 to '])
  })

  it('chooses an epoch above the accepted epochs of all learners that connect in time, observers included', () => {
    const harness = new LeaderHarness(observed, { acceptedEpoch: 4, currentEpoch: 3 }).step({ type: 'start' })
    expect(harness.identify(7, 8, { observer: true }).takeLog()).toEqual([])
    expect(harness.identify(1, 6).takeLog()).toEqual(['store acceptedEpoch 9'])
  })

  it('leaves out an accepted epoch of one voter that is more than 1,024 after its own', () => {
    const harness = new LeaderHarness(five, { acceptedEpoch: 4, currentEpoch: 3 })
    harness.step({ type: 'start' })
    harness.identify(1, 5000)
    harness.identify(2, 4 + 1024)
    expect(harness.takeLog().filter((line) => line.startsWith('store'))).toEqual([])
    harness.identify(4, 3)
    expect(harness.takeLog().filter((line) => line.startsWith('store'))).toEqual(['store acceptedEpoch 1029'])
  })

  it('goes to meet voters that are farther ahead, one jump for each discovery, if they would complete its quorum', () => {
    const stores = (...claims: readonly number[]): string[] => {
      const harness = new LeaderHarness(five, { acceptedEpoch: 4, currentEpoch: 3, initLimit: 2 })
      harness.step({ type: 'start' })
      for (const [index, epoch] of claims.entries()) harness.identify([1, 2, 4][index]!, epoch)
      for (let half = 0; half < 8; half++) harness.step({ type: 'halfTick' })
      return harness.takeLog().filter((line) => line.startsWith('store') || line.startsWith('step down'))
    }
    const given = 'step down: no quorum in time for discovery'
    expect(stores(5000, 6000)).toEqual(['store acceptedEpoch 1028', given])
    expect(stores(1030, 1029)).toEqual(['store acceptedEpoch 1028', given])
    expect(stores(5000)).toEqual([given])
    expect(stores(4)).toEqual([given])
  })

  it('moves more than 1,024 epochs ahead for a quorum of voters that has accepted them', () => {
    const harness = new LeaderHarness(five, { acceptedEpoch: 4, currentEpoch: 3 })
    harness.step({ type: 'start' })
    harness.identify(1, 9000)
    harness.identify(2, 5000)
    expect(harness.takeLog().filter((line) => line.startsWith('store'))).toEqual([])
    harness.identify(4, 5001)
    expect(harness.takeLog().filter((line) => line.startsWith('store'))).toEqual(['store acceptedEpoch 5002'])
  })

  it('sends the epoch when its acceptedEpoch is stored, and synchronises learners when its currentEpoch is stored', () => {
    const harness = new LeaderHarness(five).step({ type: 'start' })
    for (const id of [1, 2, 4]) harness.identify(id)
    expect(harness.takeLog()).toEqual(['store acceptedEpoch 1'])
    harness.stored('acceptedEpoch', 1)
    for (const id of [1, 2, 4]) harness.ackEpoch(id)
    expect(harness.takeLog('diff')).toEqual([])
    expect(harness.stored('currentEpoch', 1).takeLog('diff')).toEqual([
      'diff 0 to 1',
      'diff 0 to 2',
      'diff 0 to 4',
    ])
  })

  it('does not count an epoch accepted before, nor one accepted by a server that does not trust its data', () => {
    const harness = new LeaderHarness(five).step({ type: 'start' })
    for (const id of [1, 2, 4]) harness.identify(id)
    harness.stored('acceptedEpoch', 1).takeLog()
    harness.ackEpoch(1, 0, -1).ackEpoch(2, -1, 0)
    expect(harness.ackEpoch(4).takeLog()).toEqual([])
  })

  it('counts neither epoch nor ACKs of a voter that connects as an observer', () => {
    const harness = new LeaderHarness(three).step({ type: 'start' })
    expect(harness.identify(1, 0, { observer: true }).takeLog()).toEqual([])
    harness.identify(2)
    harness.stored('acceptedEpoch', 1).takeLog()
    expect(harness.ackEpoch(1).takeLog()).toEqual([])
    harness.ackEpoch(2)
    harness.stored('currentEpoch', 1).takeLog()
    expect(harness.ack(1, z(1, 0)).takeLog()).toEqual([])
    expect(harness.ack(2, z(1, 0)).takeLog()[0]).toBe('lead 1 from 100000000')
    harness.propose(1).markDurable(z(1, 1))
    expect(harness.ack(1, z(1, 1)).takeLog()).toEqual(['propose 100000001 to 2'])
    expect(harness.ack(2, z(1, 1)).takeLog()).toEqual(['commit 100000001 to 2 inform 1'])
  })

  it('drops a learner that acknowledges NEWLEADER of another epoch or before it was sent', () => {
    const harness = new LeaderHarness(three, { acceptedEpoch: 4, currentEpoch: 4 }).forceSnapshots()
    harness.step({ type: 'start' })
    for (const id of [1, 2]) harness.identify(id)
    harness.stored('acceptedEpoch', 5)
    for (const id of [1, 2]) harness.ackEpoch(id)
    harness.stored('currentEpoch', 5)
    harness.step({ type: 'streamed', to: 1 }).takeLog()
    harness.ack(1, z(4, 0))
    expect(
      harness
        .ack(2, z(5, 0))
        .takeLog()
        .filter((line) => !line.startsWith('left')),
    ).toEqual([
      'drop 1: it acknowledges 400000000 instead of NEWLEADER 500000000',
      'drop 2: it acknowledges 500000000 before NEWLEADER was sent',
    ])
  })

  it('drops a learner with a more recent history, by epoch first, until a quorum has accepted the epoch', () => {
    const harness = new LeaderHarness(five, { lastZxid: z(2, 5), currentEpoch: 2, acceptedEpoch: 2 })
    harness.step({ type: 'start' })
    for (const id of [1, 2, 4]) harness.identify(id, 2)
    harness.stored('acceptedEpoch', 3).takeLog()
    harness.ackEpoch(1, z(2, 6), 2)
    expect(harness.ackEpoch(2, z(2, 4), 3).takeLog()).toEqual([
      'drop 1: it is ahead of this leader, in epoch 2 at 200000006',
      'drop 2: it is ahead of this leader, in epoch 3 at 200000004',
    ])
    harness.ackEpoch(4, z(2, 5), 2).identify(5, 2)
    harness.ackEpoch(5, z(2, 1), 2).takeLog()
    harness.stored('currentEpoch', 3)
    // Connects later with a longer log: its last transactions are uncommitted.
    harness.identify(101, 3)
    expect(harness.ackEpoch(101, z(2, 9), -1).takeLog()).toContain('trunc 200000005 to 101')
  })

  it.each([
    ['its own id', { server: 3 }, 0, /the id of this server, 3/],
    ['an old protocol', { protocol: 1 }, 0, /protocol version is 1, older/],
    ['a newer configuration', { configVersion: z(1, 1) }, 0, /configuration 100000001 is newer than 0/],
    ['an epoch that no leader can have', {}, 0x1f_ffff, /epoch 2097151 is not from 0 to 2097150/],
  ])('rejects a learner with %s', (_what, given, epoch, reason) => {
    const harness = new LeaderHarness(three).step({ type: 'start' })
    expect(harness.identify(1, epoch, given).takeLog()).toEqual([expect.stringMatching(reason)])
  })

  it('accepts a learner that has activated the configuration that this leader has only logged', () => {
    const proposed = parseConfiguration(`${three}\nversion=100000001`)
    const harness = new LeaderHarness(three, { proposed }).step({ type: 'start' })
    expect(harness.identify(1, 0, { configVersion: z(1, 1) }).takeLog('drop')).toEqual([])
    expect(harness.identify(2, 0, { configVersion: z(1, 2) }).takeLog('drop')).toEqual([
      'drop 2: its configuration 100000002 is newer than 100000001 here',
    ])
  })

  it('is established by a voter that observes by the configuration which this leader has only logged', () => {
    const lines = five.split('\n')
    const proposed = parseConfiguration(
      `${lines[0]}:observer\n${lines[1]}:observer\n${lines.slice(2).join('\n')}\nversion=100000001`,
    )
    const lead = (configVersion: number): string[] => {
      const harness = new LeaderHarness(five, { proposed, self: 5 }).step({ type: 'start' })
      harness.identify(4).identify(1, 0, { observer: true, configVersion })
      harness.stored('acceptedEpoch', 1).ackEpoch(4).ackEpoch(1).stored('currentEpoch', 1)
      harness.ack(4, z(1, 0)).ack(1, z(1, 0))
      return harness.takeLog().filter((line) => line.startsWith('lead '))
    }
    expect(lead(z(1, 1)), 'it observes by the logged configuration').toEqual(['lead 1 from 100000000'])
    expect(lead(0), 'it observes although its configuration lets it vote').toEqual([])
  })

  it('steps down instead of leading in an epoch beyond the last one', () => {
    const harness = new LeaderHarness(three, { acceptedEpoch: 0x1f_fffe })
    harness.step({ type: 'start' })
    expect(harness.takeLog()).toEqual(['step down: it has accepted epoch 2097150, the last one'])
  })

  it('leads in the last epoch, without a server that has accepted it', () => {
    const harness = new LeaderHarness(three, { acceptedEpoch: 0x1f_fffd })
    harness.step({ type: 'start' })
    harness.identify(1, 0x1f_fffe)
    expect(harness.takeLog().filter((line) => line.startsWith('store'))).toEqual([])
    harness.identify(2, 0x1f_fffc)
    expect(harness.takeLog().filter((line) => line.startsWith('store'))).toEqual([
      'store acceptedEpoch 2097150',
    ])
  })

  it('drops a connection that sends an unexpected or malformed packet', () => {
    const harness = new LeaderHarness(three)
    harness.step({ type: 'start' }, { type: 'accepted', from: 9 }, { type: 'accepted', from: 8 })
    harness.packet(9, { type: PacketType.ping })
    harness.packet(8, { type: PacketType.followerInfo, data: Uint8Array.of(1) })
    expect(harness.takeLog()).toEqual([
      'drop 9: expected followerInfo or observerInfo first, got ping',
      expect.stringMatching(/^drop 8: Expected/),
    ])
    harness.identify(1)
    harness.stored('acceptedEpoch', 1).takeLog()
    harness.packet(1, { type: PacketType.request })
    expect(harness.takeLog()).toEqual(['drop 1: unexpected request in state epochSent'])
    expect(harness.packet(1, { type: PacketType.request }).takeLog()).toEqual([])
  })

  it('drops a learner that sends a packet before its turn, whatever its state', () => {
    const harness = new LeaderHarness(five).step({ type: 'start' })
    harness.identify(1).ackEpoch(1)
    expect(harness.takeLog()).toEqual(['drop 1: unexpected ackEpoch in state identified'])
    for (const id of [1, 2, 4, 5]) harness.identify(id)
    harness.stored('acceptedEpoch', 1)
    for (const id of [1, 2, 4, 5]) harness.ackEpoch(id)
    expect(harness.ack(1, z(1, 0)).takeLog('drop')).toEqual(['drop 1: unexpected ack in state epochAccepted'])
    harness.stored('currentEpoch', 1).packet(2, { type: PacketType.request }).ack(4, z(1, 0))
    expect(harness.takeLog('drop')).toEqual(['drop 2: unexpected request in state syncing'])
    expect(harness.ack(4, z(0, 1)).takeLog()).toEqual([])
    harness.packet(4, { type: PacketType.ping })
    expect(harness.takeLog('drop')).toEqual(['drop 4: unexpected ping in state synced'])
  })

  it('does not drop a learner for a defect of its own', () => {
    const harness = establishedLeader(three, [1])
    const broken = { type: PacketType.followerInfo, data: {} as Uint8Array }
    harness.step({ type: 'accepted', from: 2 })
    expect(() => harness.packet(2, broken)).toThrow(TypeError)
    expect(harness.takeLog()).toEqual([])
  })

  it('synchronises and activates no learner that has not accepted the epoch', () => {
    const harness = new LeaderHarness(five).step({ type: 'start' })
    for (const id of [1, 2, 4, 5]) harness.identify(id)
    harness.stored('acceptedEpoch', 1)
    for (const id of [1, 2, 5]) harness.ackEpoch(id)
    expect(harness.stored('currentEpoch', 1).takeLog('diff')).toEqual([
      'diff 0 to 1',
      'diff 0 to 2',
      'diff 0 to 5',
    ])
    for (const id of [1, 2]) harness.ack(id, z(1, 0))
    expect(harness.takeLog('upToDate')).toEqual(['upToDate -1 to 1', 'upToDate -1 to 2'])
    harness.identify(101, 1)
    expect(harness.ackEpoch(4).takeLog('diff')).toEqual(['diff 0 to 4'])
  })

  it('synchronises no connection that loses the place of its server before it accepts the epoch', () => {
    const harness = establishedLeader(five, [1, 2])
    harness.identify(4, 1).identify(104, 1).ackEpoch(4, 0, 1).ack(4, z(1, 0)).identify(204, 1)
    expect(harness.takeLog('drop')).toEqual([
      'drop 104: the same server has connected again',
      'drop 204: server 4 is connected already',
    ])
    harness.identify(5, 1).identify(105, 1, { isAuthenticated: true }).takeLog()
    expect(harness.ackEpoch(5, 0, 1).takeLog()).toEqual([
      expect.stringMatching(/^drop 5: .* has proved its id/),
    ])
  })

  it('ignores an ACK of an unknown proposal before NEWLEADER is acknowledged', () => {
    const harness = establishedLeader(five, [1, 2])
    harness.identify(4, 1).ackEpoch(4, 0, 1).ack(4, z(1, 7)).takeLog()
    expect(harness.ack(4, z(1, 0)).takeLog()).toEqual(['upToDate -1 to 4'])
  })

  it('warns once of a voter far ahead, and of none within reach', () => {
    const near = new LeaderHarness(five).step({ type: 'start' })
    expect(near.identify(1, 1024).takeLog()).toEqual([])
    const harness = new LeaderHarness(five).step({ type: 'start' })
    harness.identify(2, 1025)
    expect(harness.takeLog()).toEqual([
      expect.stringMatching(/^warn: A server has accepted an epoch far beyond/),
    ])
    expect(harness.identify(4, 9000).takeLog('warn')).toEqual([])
  })

  it('keeps a follower that answers PINGs when a second connection claims its id, whose ACKs do not count', () => {
    const harness = establishedLeader(three, [1])
    harness.identify(101, 1).ackEpoch(101, 0, -1).ack(101, z(1, 0))
    expect(harness.takeLog()).toEqual(['drop 101: server 1 is connected already'])
    harness.propose(1).markDurable(z(1, 1)).ack(101, z(1, 1))
    expect(harness.takeLog()).toEqual(['propose 100000001 to 1'])
    expect(harness.ack(1, z(1, 1)).takeLog()).toEqual(['commit 100000001 to 1'])
  })

  it('replaces a follower that has not answered for more than two ticks by its next connection', () => {
    const harness = establishedLeader(three, [1])
    harness.ticks(2).identify(101, 1)
    expect(harness.takeLog('drop')).toEqual(['drop 101: server 1 is connected already'])
    harness.ticks(1).takeLog()
    expect(harness.identify(201, 1).takeLog()).toEqual(['leaderInfo 100000000 to 201'])
    harness.ackEpoch(201, 0, -1)
    expect(harness.takeLog().slice(0, 2)).toEqual([
      'drop 1: the same server has connected again, after 3 ticks of silence',
      'left 1',
    ])
  })

  it('lets one of several connections that claim an id accept the epoch, and refuses a fifth one', () => {
    const harness = establishedLeader(five, [1, 4])
    for (const connection of [2, 102, 202, 302]) harness.identify(connection, 1)
    harness.takeLog()
    expect(harness.identify(402, 1).takeLog()).toEqual([
      'drop 402: 4 connections claim to be server 2 and have not accepted the epoch',
    ])
    expect(harness.ackEpoch(102, 0, 1).takeLog('drop')).toEqual(
      [2, 202, 302].map((id) => `drop ${id}: the same server has connected again`),
    )
    // One that is being synchronised is none of the four.
    for (const connection of [2, 202, 302, 402]) harness.identify(connection, 1)
    expect(harness.takeLog('drop')).toEqual([])
    expect(harness.ack(102, z(1, 0)).identify(502, 1).takeLog('drop')).toEqual([
      'drop 502: server 2 is connected already',
    ])
  })

  it('gives the place of a server to a connection that has proved its id, and takes it back for none without a proof', () => {
    const harness = establishedLeader(three, [1])
    harness.identify(101, 1, { isAuthenticated: true }).takeLog()
    expect(harness.identify(201, 1).takeLog()).toEqual([
      'drop 201: server 1 is connected, has proved its id, and this connection has not',
    ])
    expect(harness.ackEpoch(101, 0, 1).takeLog('drop')).toEqual([
      'drop 1: the same server has connected again',
    ])
    harness.ack(101, z(1, 0)).ticks(3).takeLog()
    expect(harness.identify(301, 1).takeLog('drop')[0]).toMatch(/^drop 301: .* has proved its id/)
    harness.identify(401, 1, { isAuthenticated: true }).ackEpoch(401, 0, 1)
    expect(harness.takeLog('drop')).toEqual(['drop 101: the same server has connected again'])
  })

  it('does not forget the vote and the epoch of a server that a second connection claims to be', () => {
    const harness = new LeaderHarness(five, { acceptedEpoch: 1 }).step({ type: 'start' })
    harness.identify(1, 7)
    harness.identify(101, 3, { observer: true })
    harness.identify(201, 5000)
    expect(harness.identify(2, 1).takeLog('store')).toEqual(['store acceptedEpoch 8'])
  })

  it('drops the oldest unidentified connection for a new one, and refuses a learner above the limit', () => {
    const harness = new LeaderHarness(three, { maxUnidentified: 2, maxLearners: 1 }).step({ type: 'start' })
    for (const from of [50, 51, 52]) harness.step({ type: 'accepted', from })
    expect(harness.takeLog()).toEqual(['drop 50: there are too many unidentified connections'])
    harness.identify(1).takeLog()
    expect(harness.leader.heartbeat(52)).toBe(false)
    harness.step({ type: 'accepted', from: 53 })
    expect(harness.takeLog()).toEqual(['drop 53: there are already 1 learners'])
  })

  it('drops no learner for a new connection', () => {
    const harness = new LeaderHarness(three, { maxUnidentified: 2 }).step({ type: 'start' }).identify(1)
    for (const from of [50, 51, 52]) harness.step({ type: 'accepted', from })
    expect(harness.takeLog('drop')).toEqual(['drop 50: there are too many unidentified connections'])
  })

  it('steps down without a quorum in time, in discovery and in synchronisation', () => {
    const discovery = new LeaderHarness(three).step({ type: 'start' })
    expect(discovery.ticks(10).takeLog()).toEqual([])
    expect(discovery.ticks(1).takeLog()).toEqual(['step down: no quorum in time for discovery'])
    const sync = new LeaderHarness(three).step({ type: 'start' })
    sync.identify(1).stored('acceptedEpoch', 1).ackEpoch(1)
    sync.stored('currentEpoch', 1).takeLog()
    expect(sync.ticks(11).takeLog()).toEqual(['step down: no quorum in time for synchronisation'])
  })

  it('needs a majority in a majority of the groups of a hierarchy', () => {
    const harness = new LeaderHarness(grouped).step({ type: 'start' })
    harness.identify(1).identify(6)
    expect(harness.identify(4).takeLog()).toEqual([])
    expect(harness.identify(5).takeLog()).toEqual(['store acceptedEpoch 1'])
  })

  it('leads alone when the oracle allows it and the other voter had a tick to connect', () => {
    const harness = new LeaderHarness('server.1=h:1:2\nserver.3=h:3:4', { oracle: true })
    expect(harness.step({ type: 'oracle', canLeadAlone: true }, { type: 'start' }).takeLog()).toEqual([])
    harness.ticks(1).stored('acceptedEpoch', 1)
    expect(harness.stored('currentEpoch', 1).takeLog()).toEqual([
      'store acceptedEpoch 1',
      'store currentEpoch 1',
      'lead 1 from 100000000',
    ])
    harness.propose(1)
    expect(harness.markDurable(z(1, 1)).takeLog().at(-1)).toBe('commit 100000001 to ')
    harness.step({ type: 'oracle', canLeadAlone: false })
    expect(harness.ticks(1).takeLog()).toEqual(['step down: too few followers are synced'])
  })
})

describe('an established leader', () => {
  it('proposes without waiting for commits, and commits in order whatever the order of the ACKs', () => {
    const harness = establishedLeader(five, [1, 2])
    for (const counter of [1, 2, 3]) harness.propose(counter)
    expect(harness.takeLog()).toEqual([
      'propose 100000001 to 1,2',
      'propose 100000002 to 1,2',
      'propose 100000003 to 1,2',
    ])
    harness.ack(1, z(1, 2))
    expect(harness.ack(2, z(1, 1)).takeLog()).toEqual([])
    expect(harness.markDurable(z(1, 3)).takeLog()).toEqual(['commit 100000001 to 1,2'])
    expect(harness.ack(2, z(1, 3)).takeLog()).toEqual(['commit 100000002 to 1,2'])
    expect(harness.ack(1, z(1, 3)).takeLog()).toEqual(['commit 100000003 to 1,2'])
    expect([harness.leader.outstanding, harness.window.max]).toEqual([0, z(1, 3)])
  })

  it('commits with a quorum of followers before its own log is durable', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    harness.propose(1)
    for (const id of [1, 2, 4]) harness.ack(id, z(1, 1))
    expect(harness.takeLog().at(-1)).toBe('commit 100000001 to 1,2,4')
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual([])
  })

  it('counts no ACK of an older epoch, of an observer, of NEWLEADER, twice, or of an unknown proposal', () => {
    const harness = establishedLeader(observed, [1]).join(7, 0, { observer: true })
    harness.propose(1).takeLog()
    harness.ack(7, z(1, 1)).ack(1, z(0, 1))
    expect(harness.ack(1, z(1, 0)).takeLog()).toEqual([])
    expect(harness.ack(1, z(1, 2)).takeLog()).toEqual(['warn: Ignored an unexpected packet of a learner'])
    harness.ack(1, z(1, 1))
    expect(harness.ack(1, z(1, 1)).takeLog()).toEqual([])
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual(['commit 100000001 to 1 inform 7'])
  })

  it('rejects a proposal that is not the next one', () => {
    const harness = establishedLeader(three)
    expect(() => harness.propose(2)).toThrow('Expected 100000001, got 100000002')
    harness.propose(1)
    expect(() => harness.propose(1)).toThrow(RangeError)
    expect(() => new LeaderHarness(three).propose(1)).toThrow('Expected no proposal')
  })

  it('sends a late follower history, then uncommitted proposals, then NEWLEADER, then all that follows', () => {
    const harness = establishedLeader(five, [1, 2])
    harness.propose(1)
    for (const id of [1, 2]) harness.ack(id, z(1, 1))
    harness.markDurable(z(1, 1))
    harness.propose(2).takeLog()
    harness.identify(4, 1)
    expect(harness.ackEpoch(4, 0, 1).takeLog()).toEqual([
      'leaderInfo 100000000 to 4',
      'diff 100000001 100000001 to 4',
      'proposal 100000002 to 4',
      'newLeader 100000000 to 4',
      'joined 4',
    ])
    expect(harness.propose(3).takeLog()).toEqual(['propose 100000003 to 1,2,4'])
    // Releases before 3.9.3 acknowledge proposals before NEWLEADER.
    harness.ack(4, z(1, 3))
    expect(harness.ack(1, z(1, 3)).takeLog()).toEqual([])
    expect(harness.markDurable(z(1, 3)).takeLog()).toEqual([])
    expect(harness.ack(4, z(1, 0)).takeLog()).toEqual([
      'upToDate -1 to 4',
      'commit 100000002 to 1,2,4',
      'commit 100000003 to 1,2,4',
    ])
  })

  it('sends NEWLEADER when the snapshot and all commits during it are sent', () => {
    const harness = establishedLeader(three, [1]).forceSnapshots()
    harness.identify(2, 1).ackEpoch(2, 0, 1)
    expect(harness.takeLog()).toEqual(['leaderInfo 100000000 to 2', 'snap to 2', 'joined 2'])
    harness.propose(1).ack(1, z(1, 1)).markDurable(z(1, 1))
    expect(harness.takeLog()).toEqual(['propose 100000001 to 1,2', 'commit 100000001 to 1,2'])
    expect(harness.step({ type: 'streamed', to: 2 }).takeLog()).toEqual(['newLeader 100000000 to 2'])
    expect(harness.step({ type: 'streamed', to: 2 }, { type: 'streamed', to: 9 }).takeLog()).toEqual([])
  })

  it('counts what it has committed during a snapshot as acknowledged with NEWLEADER', () => {
    const harness = establishedLeader(three, [1]).forceSnapshots()
    harness.identify(2, 1).ackEpoch(2, 0, 1)
    harness.propose(1).ack(1, z(1, 1)).markDurable(z(1, 1)).takeLog()
    harness.step({ type: 'streamed', to: 2 }).ack(2, z(1, 0)).takeLog()
    for (let tick = 0; tick < 12; tick++) {
      for (const id of [1, 2]) harness.pong(id)
      expect(harness.ticks(1).takeLog('drop')).toEqual([])
    }
  })

  it('sends a late observer history without uncommitted proposals', () => {
    const harness = establishedLeader(observed, [1])
    harness.propose(1).takeLog()
    expect(harness.join(7, 0, { observer: true }).takeLog()).toEqual([
      'leaderInfo 100000000 to 7',
      'diff 0 to 7',
      'newLeader 100000000 to 7',
      'joined 7',
      'upToDate -1 to 7',
    ])
  })

  it('forgets the ACKs of a server that reconnects, since it may truncate these transactions', () => {
    const harness = establishedLeader(five, [1, 2])
    harness.propose(1).ack(1, z(1, 1)).step({ type: 'closed', from: 1 }).identify(101, 1)
    expect(harness.ackEpoch(101, z(1, 1), -1).takeLog()).toContain('trunc 0 to 101')
    harness.markDurable(z(1, 1))
    expect(harness.ack(2, z(1, 1)).takeLog()).toEqual([])
    harness.ack(101, z(1, 0))
    expect(harness.ack(101, z(1, 1)).takeLog().at(-1)).toBe('commit 100000001 to 2,101')
  })

  it('counts the ACKs of a server whose connection is closed', () => {
    const harness = establishedLeader(five, [1, 2])
    harness.propose(1).ack(1, z(1, 1)).step({ type: 'closed', from: 1 })
    harness.markDurable(z(1, 1))
    expect(harness.ack(2, z(1, 1)).takeLog().at(-1)).toBe('commit 100000001 to 2')
  })

  it('delivers requests and revalidations of active learners', () => {
    const harness = establishedLeader(three)
    harness.packet(1, { type: PacketType.request })
    harness.packet(1, { type: PacketType.revalidate })
    expect(harness.packet(1, { type: PacketType.leaderInfo }).takeLog()).toEqual([
      'deliver request of 1',
      'deliver revalidate of 1',
      'warn: Ignored an unexpected packet of a learner',
    ])
  })

  it('sends PINGs twice a tick and steps down when too few followers answer', () => {
    const harness = establishedLeader(five, [1, 2])
    expect(harness.ticks(1).takeLog()).toEqual(
      Array.from({ length: 2 }, () => ['ping 100000000 to 1', 'ping 100000000 to 2']).flat(),
    )
    harness.ticks(3).pong(1).ticks(2)
    const lines = harness.takeLog()
    expect(lines).toContain('drop 2: it was silent for too long in state active')
    expect(lines.at(-1)).toBe('step down: too few followers are synced')
    expect(harness.step({ type: 'halfTick' }).takeLog()).toEqual([])
  })

  it.each<[string, (harness: LeaderHarness) => unknown, boolean]>([
    ['a follower that is being synchronised', (harness) => harness.identify(2, 1).ackEpoch(2, 0, 1), true],
    ['no follower that has not accepted the epoch', (harness) => harness.identify(2, 1), false],
    [
      'no voter that is synchronised as an observer',
      (harness) => harness.identify(2, 1, { observer: true }).ackEpoch(2, 0, 1),
      false,
    ],
  ])('counts %s among those that keep it in office', (_who, connect, stays) => {
    const harness = establishedLeader(three, [1])
    connect(harness)
    harness.step({ type: 'closed', from: 1 }).ticks(1)
    expect(harness.takeLog('step down')).toEqual(stays ? [] : ['step down: too few followers are synced'])
  })

  it('gives a connection initLimit ticks to identify itself and to accept the epoch, whatever bytes it sends', () => {
    const harness = new LeaderHarness('server.3=h:1:2\nserver.7=h:7:8:observer').establish().ticks(5)
    harness.step({ type: 'accepted', from: 9 }).identify(7, 1, { observer: true }).takeLog()
    for (let i = 0; i < 10; i++) {
      for (const id of [7, 9]) harness.leader.heartbeat(id)
      expect(harness.ticks(1).takeLog('drop')).toEqual([])
    }
    expect(harness.ticks(1).takeLog('drop')).toEqual([
      'drop 9: it was silent for too long in state unidentified',
      'drop 7: it was silent for too long in state epochSent',
    ])
  })

  it('drops a follower that answers PINGs but leaves a proposal unacknowledged', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    const drops: string[] = []
    for (let i = 1; i <= 12; i++) {
      harness.propose(i)
      for (const id of [1, 2]) harness.ack(id, z(1, i))
      if (i < 4) harness.ack(4, z(1, i))
      harness.markDurable(z(1, i))
      for (const id of [1, 2, 4]) harness.pong(id)
      harness.ticks(1)
      drops.push(...harness.takeLog('drop'))
    }
    expect(drops).toEqual([expect.stringMatching(/^drop 4: it has not acknowledged 10000000\d in time$/)])
  })

  it('accepts requests of active learners only, and treats each as a heartbeat', () => {
    const harness = establishedLeader(five, [1, 2])
    const accepted: boolean[] = []
    const request = (id: number): void => void accepted.push(harness.leader.heartbeat(id))
    request(4)
    harness.identify(4, 1)
    request(4)
    harness.ackEpoch(4, 0, 1)
    request(4)
    harness.ack(4, z(1, 0))
    request(4)
    expect(accepted).toEqual([false, false, false, true])
    harness.takeLog()
    for (let i = 0; i < 20; i++) {
      for (const id of [1, 2]) harness.pong(id)
      request(4)
      harness.ticks(1)
    }
    expect(harness.takeLog('drop')).toEqual([])
  })

  it('keeps a syncing learner as long as it reads its data', () => {
    const harness = establishedLeader(five, [1, 2])
    harness.identify(4, 1).ackEpoch(4, 0, 1)
    for (let i = 0; i < 30; i++) {
      for (const id of [1, 2]) harness.pong(id)
      harness.leader.heartbeat(4)
      harness.ticks(1)
    }
    expect(harness.takeLog('drop')).toEqual([])
    for (let i = 0; i < 16; i++) {
      for (const id of [1, 2]) harness.pong(id)
      harness.ticks(1)
    }
    expect(harness.takeLog('drop')).toEqual(['drop 4: it was silent for too long in state syncing'])
  })

  it('steps down when the last counter of its epoch is committed', () => {
    const harness = establishedLeader(three, [1], { maxCounter: 2 })
    harness.propose(1).propose(2)
    expect(harness.leader.canPropose).toBe(false)
    expect(() => harness.propose(3)).toThrow('Expected no proposal')
    harness.step({ type: 'halfTick' }).markDurable(z(1, 2))
    harness.ack(1, z(1, 2)).takeLog()
    harness.step({ type: 'halfTick' })
    expect(harness.takeLog().at(-1)).toBe('step down: all counters of this epoch are used')
  })

  it.each([
    ['a voter', 2, {}, 4],
    ['a voter with the last epoch of all', 2, {}, 0x1f_fffd],
    ['an observer', 7, { observer: true }, 4],
    ['a non-voter', 9, {}, 4],
  ])('keeps leading in its epoch when %s has accepted a later one', (_who, id, info, acceptedEpoch) => {
    const harness = establishedLeader(observed, [1])
    expect(harness.identify(id, acceptedEpoch, info).takeLog()).toEqual([`leaderInfo 100000000 to ${id}`])
    expect(harness.leader.canPropose).toBe(true)
    harness.step({ type: 'halfTick' }, { type: 'halfTick' })
    expect(harness.takeLog().filter((line) => /step down|store/.test(line))).toEqual([])
  })
})
