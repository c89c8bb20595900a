import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { parseConfiguration, printConfiguration } from '../quorum/index.ts'
import { PacketType } from './packets.ts'
import { decodeConfigurationText, encodeAckEpoch } from './payloads.ts'
import { establishedLeader, LeaderHarness } from './testing/leader-harness.ts'
import { makeReconfig, makeTxn } from './testing/txn.ts'

const z = makeZxid
const member = (id: number, port = id * 10): string => `server.${id}=h:${port}:${port + 1}:participant`
const members = (...ids: number[]): string => ids.map((id) => member(id)).join('\n')
const three = members(1, 2, 3)
const five = members(1, 2, 3, 4, 5)

describe('a leader', () => {
  it('commits what a quorum has acknowledged since the last work as one item of work', () => {
    const { leader, ...harness } = establishedLeader(three, [1])
    for (const counter of [1, 2, 3, 4]) leader.propose(z(1, counter), makeTxn(z(1, counter), 1).payload)
    while (leader.nextWork() !== undefined);
    leader.ack(1, z(1, 1))
    expect(leader.nextWork()).toBeUndefined()
    leader.markDurable(z(1, 4))
    for (const counter of [1, 2, 3]) leader.ack(1, z(1, counter))
    expect([leader.nextWork(), leader.nextWork()]).toMatchObject([
      { do: 'commit', first: z(1, 1), payloads: { length: 3 }, followers: [1] },
      undefined,
    ])
    expect(harness.window.max).toBe(z(1, 3))
  })

  it('commits nothing after it has stepped down', () => {
    const harness = establishedLeader(three, [1])
    harness.propose(1).markDurable(z(1, 1)).takeLog()
    harness.ack(1, z(1, 1)).step({ type: 'closed', from: 1 }).ticks(1)
    expect(harness.takeLog()).toEqual(['left 1', 'step down: too few followers are synced'])
    expect([harness.leader.phase, harness.leader.canPropose]).toEqual(['over', false])
  })

  it('takes no packet and no heartbeat of a learner after it has stepped down', () => {
    const harness = establishedLeader(five, [1, 2])
    expect(harness.leader.heartbeat(1)).toBe(true)
    harness.step({ type: 'closed', from: 2 }).ticks(1).takeLog()
    expect(harness.leader.heartbeat(1)).toBe(false)
    expect(harness.ack(1, z(1, 9)).markDurable(z(1, 9)).takeLog()).toEqual([])
    expect(harness.step({ type: 'transfer' }, { type: 'accepted', from: 4 }).identify(5).takeLog()).toEqual(
      [],
    )
  })

  it('counts an ACK that is given as a packet like any other', () => {
    const harness = establishedLeader(three, [1])
    harness
      .propose(1)
      .markDurable(z(1, 1))
      .packet(1, { type: PacketType.ack, zxid: z(1, 1) })
    expect(harness.takeLog('commit')).toEqual(['commit 100000001 to 1'])
  })
})

describe('a leadership check', () => {
  it('is confirmed when a quorum has answered PINGs sent after the request', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    harness.step({ type: 'halfTick' }).takeLog()
    harness.step({ type: 'checkLeadership', id: 1 })
    expect(harness.takeLog()).toEqual([1, 2, 4].map((id) => `ping 100000000 to ${id}`))
    // These answer the earlier PING.
    harness.pong(1).pong(2)
    expect(harness.pong(1).takeLog('confirmed')).toEqual([])
    expect(harness.pong(2).takeLog('confirmed')).toEqual(['confirmed 1'])
  })

  it('is not confirmed by answers without a PING', () => {
    const harness = establishedLeader(three, [1])
    for (let i = 0; i < 3; i++) harness.pong(1)
    harness.step({ type: 'checkLeadership', id: 1 })
    expect(harness.takeLog('confirmed')).toEqual([])
    expect(harness.pong(1).takeLog()).toContain('confirmed 1')
  })

  it('shares a round of PINGs with all checks that wait, and starts the next round after it', () => {
    const harness = establishedLeader(three, [1])
    for (const id of [1, 2, 3]) harness.step({ type: 'checkLeadership', id })
    expect(harness.takeLog()).toEqual(['ping 100000000 to 1'])
    expect(harness.pong(1).takeLog()).toEqual(['deliver ping of 1', 'ping 100000000 to 1', 'confirmed 1'])
    expect(harness.pong(1).takeLog()).toEqual(['deliver ping of 1', 'confirmed 2', 'confirmed 3'])
    expect(harness.pong(1).takeLog()).toEqual(['deliver ping of 1'])
  })

  it('waits for the commit of earlier proposals, not of later ones', () => {
    const harness = establishedLeader(three, [1])
    harness.propose(1).step({ type: 'checkLeadership', id: 1 }).propose(2)
    harness.pong(1)
    harness.ack(1, z(1, 1)).takeLog()
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual(['commit 100000001 to 1', 'confirmed 1'])
  })

  it('is confirmed by followers that became active after the round began', () => {
    const harness = establishedLeader(three, [1])
    harness.step({ type: 'checkLeadership', id: 1 }).join(2, 0)
    harness.step({ type: 'closed', from: 1 }, { type: 'halfTick' }).takeLog()
    expect(harness.pong(2).takeLog()).toContain('confirmed 1')
  })

  it('sends PINGs to active followers only', () => {
    const harness = establishedLeader(`${five}\nserver.7=h:70:71:observer`, [1, 2])
    harness.join(7, 0, { observer: true }).identify(4, 1).ackEpoch(4, 0, 1).takeLog()
    const pings = (...ids: number[]): string[] => ids.map((id) => `ping 100000000 to ${id}`)
    expect(harness.step({ type: 'checkLeadership', id: 1 }).takeLog()).toEqual(pings(1, 2))
    expect(harness.step({ type: 'halfTick' }).takeLog()).toEqual(pings(1, 2, 7))
  })

  it('is confirmed by the answer to the first PING after the request, though a second one is sent', () => {
    const harness = establishedLeader(three, [1])
    harness.step({ type: 'checkLeadership', id: 1 }, { type: 'halfTick' }).takeLog()
    expect(harness.pong(1).takeLog('confirmed')).toEqual(['confirmed 1'])
  })

  it('is confirmed by no voter that follows as an observer, and by none that was not asked', () => {
    const harness = establishedLeader(five, [1, 2]).join(4, 0, { observer: true })
    harness.step({ type: 'checkLeadership', id: 1 }).join(5).step({ type: 'halfTick' })
    expect(harness.pong(1).pong(4).takeLog('confirmed')).toEqual([])
    expect(harness.pong(5).takeLog('confirmed')).toEqual(['confirmed 1'])
    const unasked = establishedLeader(five, [1, 2])
    unasked.step({ type: 'checkLeadership', id: 1 }).join(4)
    expect(unasked.pong(1).takeLog('confirmed')).toEqual([])
    expect(unasked.pong(2).takeLog('confirmed')).toEqual(['confirmed 1'])
  })

  it('is not confirmed once another server is designated to lead', () => {
    const harness = establishedLeader(three, [1, 2], { reconfigEnabled: true })
    harness.step({ type: 'checkLeadership', id: 1 })
    const version = '\nversion=100000001'
    harness.leader.propose(z(1, 1), makeReconfig(z(1, 1), members(1, 2) + version))
    for (const id of [1, 2]) harness.ack(id, z(1, 1))
    harness.takeLog()
    expect(harness.pong(1).pong(2).takeLog()).toEqual(['deliver ping of 1', 'deliver ping of 2'])
  })

  it('that is requested before the leader is established waits for a round after that', () => {
    const harness = new LeaderHarness(three).step({ type: 'start' })
    harness.step({ type: 'checkLeadership', id: 1 }).establish(1)
    expect(harness.takeLog()).toEqual([])
    expect(harness.pong(1).takeLog()).toEqual(['deliver ping of 1', 'confirmed 1'])
  })

  it('is confirmed at once when there is one voter', () => {
    const harness = new LeaderHarness('server.3=h:1:2')
    harness.establish()
    expect(harness.step({ type: 'checkLeadership', id: 1 }).takeLog()).toEqual(['confirmed 1'])
  })
})

describe('a suspended leader', () => {
  it('commits what was proposed, and proposes nothing more', () => {
    const harness = establishedLeader(three, [1, 2])
    harness.propose(1).takeLog()
    harness.step({ type: 'suspend' })
    expect(() => harness.propose(1)).toThrow('Expected no proposal')
    harness.markDurable(z(1, 1))
    harness.ack(1, z(1, 1))
    harness.takeLog()
    expect([harness.leader.outstanding, harness.leader.canPropose]).toEqual([0, false])
    harness.step({ type: 'transfer' })
    expect(harness.leader.phase).toBe('broadcast')
  })
})

describe('a leadership transfer', () => {
  it('names the highest id that has all transactions, when all proposals are committed', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    harness.propose(1).takeLog()
    harness.step({ type: 'transfer' })
    expect(harness.leader.canPropose).toBe(false)
    harness.markDurable(z(1, 1))
    for (const id of [1, 2]) harness.ack(id, z(1, 1))
    harness.takeLog()
    harness.step({ type: 'halfTick' })
    expect(harness.takeLog().at(-1)).toBe('step down: leadership is transferred (2)')
  })

  it('waits until everything is committed, though a voter has all of it', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    harness.propose(1).markDurable(z(1, 1)).ack(4, z(1, 1)).takeLog()
    harness.step({ type: 'transfer' }, { type: 'halfTick' })
    expect(harness.takeLog('step down')).toEqual([])
    harness.ack(1, z(1, 1)).takeLog()
    harness.step({ type: 'halfTick' })
    expect(harness.takeLog('step down')).toEqual(['step down: leadership is transferred (4)'])
  })

  it('does not name a server with weight 0', () => {
    const six = `${five}\nserver.6=h:11:12\ngroup.1=1:2:3\ngroup.2=4:5:6\nweight.6=0`
    const harness = establishedLeader(six, [1, 2, 4, 5, 6])
    expect(harness.step({ type: 'transfer' }).takeLog()).toEqual(['step down: leadership is transferred (5)'])
  })

  it('names the highest id whatever the order of the connections', () => {
    const harness = establishedLeader(five, [4, 2, 1])
    expect(harness.step({ type: 'transfer' }).takeLog()).toEqual(['step down: leadership is transferred (4)'])
  })

  it('is refused while another one is running, whose time it does not extend', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    harness.propose(1).step({ type: 'transfer' }).ticks(3)
    for (const id of [1, 2, 4]) harness.pong(id)
    harness.step({ type: 'transfer' })
    expect(harness.takeLog('warn')).toEqual(['warn: Leadership cannot be transferred now'])
    expect(harness.ticks(1).takeLog('warn')).toEqual([])
    expect(harness.ticks(1).takeLog('warn')).toEqual([
      'warn: Leadership is not transferred: no follower had all transactions in time',
    ])
  })

  it('is refused before the leader is established, and without a follower though an oracle lets it lead alone', () => {
    const early = new LeaderHarness(three).step({ type: 'start' }, { type: 'transfer' })
    expect(early.takeLog()).toEqual(['warn: Leadership cannot be transferred now'])
    const alone = establishedLeader(members(1, 3), [1], { oracle: true })
    alone.step({ type: 'oracle', canLeadAlone: true }, { type: 'closed', from: 1 }, { type: 'transfer' })
    expect(alone.takeLog('warn')).toEqual([expect.stringMatching(/no quorum without this one/)])
  })

  it('happens at once without uncommitted proposals', () => {
    const harness = establishedLeader(five, [1, 2, 4])
    expect(harness.step({ type: 'transfer' }).takeLog()).toEqual(['step down: leadership is transferred (4)'])
  })

  it('counts a voter that follows without a vote, which votes in the next election, and does not name it', () => {
    const four = `${three}\nserver.4=h:7:8:observer`
    const harness = establishedLeader(four, [1]).join(4, 0, { observer: true })
    harness.takeLog()
    harness.step({ type: 'transfer' })
    expect(harness.takeLog()).toEqual([expect.stringMatching(/^warn: .*no quorum without this one/)])
    harness.identify(2, 7, { observer: true }).ackEpoch(2, 0, -1).step({ type: 'transfer' })
    expect(harness.takeLog('warn')).toEqual([expect.stringMatching(/no quorum without this one/)])
    harness.ack(2, z(1, 0)).takeLog()
    harness.step({ type: 'transfer' })
    expect(harness.takeLog()).toEqual(['step down: leadership is transferred (1)'])
  })

  it('is refused when the others are no quorum, and canceled when no follower has all transactions in time', () => {
    const harness = establishedLeader(three, [1])
    harness.step({ type: 'transfer' })
    expect(harness.takeLog()).toEqual([expect.stringMatching(/^warn: .*no quorum without this one/)])
    harness.join(2).propose(1).step({ type: 'transfer' })
    for (let i = 0; i < 5; i++) {
      for (const id of [1, 2]) harness.pong(id)
      harness.ticks(1)
    }
    expect(harness.takeLog()).toContain(
      'warn: Leadership is not transferred: no follower had all transactions in time',
    )
    expect(harness.leader.canPropose).toBe(true)
  })

  describe('to a chosen voter', () => {
    const ahead = (server: number) => ({ server, payload: makeTxn(z(1, 1), 9).payload })

    it('gives it one more transaction than the others, and steps down once it has that on disk', () => {
      const harness = establishedLeader(five, [1, 2, 4])
      harness.step({ type: 'transfer', to: ahead(1) })
      expect(harness.takeLog()).toEqual(['proposal 100000001 to 1'])
      expect(() => harness.propose(1)).toThrow('Expected no proposal')
      harness.ack(2, z(1, 1))
      expect(harness.takeLog()).toEqual(['warn: Ignored an unexpected packet of a learner'])
      expect(harness.ack(1, z(1, 1)).takeLog()).toEqual(['step down: leadership is transferred (1)'])
    })

    it('waits until it has everything that is committed, and is canceled when it has not in time', () => {
      const harness = establishedLeader(five, [1, 2, 4])
      harness.propose(1).markDurable(z(1, 1)).ack(2, z(1, 1)).ack(4, z(1, 1)).takeLog()
      harness.step({ type: 'transfer', to: ahead(1) })
      for (let i = 0; i < 5; i++) {
        for (const id of [1, 2, 4]) harness.pong(id)
        harness.ticks(1)
      }
      expect(harness.takeLog('proposal')).toEqual([])
      expect(harness.leader.canPropose).toBe(true)
    })

    it('waits until a quorum has what the voter has', () => {
      const harness = establishedLeader(five, [1, 2, 4])
      harness.propose(1).markDurable(z(1, 1)).ack(1, z(1, 1)).takeLog()
      harness.step({ type: 'transfer', to: { server: 1, payload: makeTxn(z(1, 2), 9).payload } })
      harness.step({ type: 'halfTick' })
      expect(harness.takeLog('proposal')).toEqual([])
      harness.ack(2, z(1, 1)).takeLog()
      expect(harness.step({ type: 'halfTick' }).takeLog('proposal')).toEqual(['proposal 100000002 to 1'])
    })

    it('is not canceled any more once the voter was sent the transaction, which may be on its disk', () => {
      const harness = establishedLeader(five, [1, 2, 4])
      const tick = (): LeaderHarness => {
        for (const id of [1, 2, 4]) harness.pong(id)
        return harness.ticks(1)
      }
      harness.propose(1).markDurable(z(1, 1)).ack(2, z(1, 1)).ack(4, z(1, 1)).takeLog()
      harness.step({ type: 'transfer', to: { server: 1, payload: makeTxn(z(1, 2), 9).payload } })
      for (let ticks = 0; ticks < 3; ticks++) tick()
      harness.ack(1, z(1, 1))
      expect(tick().takeLog('proposal')).toEqual(['proposal 100000002 to 1'])
      for (let ticks = 4; ticks < 7; ticks++) {
        tick()
        expect([ticks, harness.leader.phase, harness.leader.canPropose]).toEqual([ticks, 'broadcast', false])
      }
      expect(tick().takeLog().at(-1)).toBe('step down: leadership is transferred (1)')
    })

    it('steps down without its answer when its connection is lost', () => {
      const harness = establishedLeader(five, [1, 2, 4])
      harness.step({ type: 'transfer', to: ahead(1) }, { type: 'closed', from: 1 }, { type: 'halfTick' })
      expect(harness.takeLog().at(-1)).toBe('step down: leadership is transferred (1)')
    })

    it('is refused for a server that cannot take over, with the reason', () => {
      const weighted = `${five}\nserver.6=h:11:12\ngroup.1=1:2:3\ngroup.2=4:5:6\nweight.6=0`
      expect(establishedLeader(weighted, [1, 2, 4, 5, 6]).leader.transferRefusal(6)).toMatch('it has no vote')
      const harness = establishedLeader(`${five}\nserver.7=h:13:14:observer`, [1, 2, 4])
      harness.join(7, 0, { observer: true }).takeLog()
      const reasons = [
        [5, 'does not follow, or is being brought up to date'],
        [7, 'has no vote'],
        [9, 'has no vote'],
        [3, 'does not follow'],
      ] as const
      for (const [id, reason] of reasons) {
        expect(harness.leader.transferRefusal(id)).toMatch(`not transferred to server ${id}: it ${reason}`)
        expect(harness.step({ type: 'transfer', to: ahead(id) }).takeLog()).toEqual([
          expect.stringContaining(reason),
        ])
      }
      harness.identify(5, 1).ackEpoch(5, 0, 1).takeLog()
      expect(harness.leader.transferRefusal(5)).toMatch('is being brought up to date')
      harness.propose(1).takeLog()
      for (let i = 0; i < 3; i++) {
        expect(harness.leader.transferRefusal(1)).toBeUndefined()
        for (const id of [1, 2, 4, 7]) harness.pong(id)
        harness.ticks(1)
      }
      expect(harness.leader.transferRefusal(1)).toMatch('not transferred to server 1: it is behind')
    })
  })
})

describe('a reconfig', () => {
  const given = { reconfigEnabled: true }
  const change = (harness: LeaderHarness, counter: number, text: string): void => {
    const version = (0x1_0000_0000 + counter).toString(16)
    harness.leader.propose(z(1, counter), makeReconfig(z(1, counter), `${text}\nversion=${version}`))
  }

  it('needs a quorum of both configurations to commit, as do later proposals until then', () => {
    const harness = establishedLeader(three, [1, 2], given)
    for (const id of [4, 5]) harness.join(id)
    harness.takeLog()
    harness.propose(1)
    change(harness, 2, members(3, 4, 5))
    harness.propose(3)
    expect(harness.leader.lastSeenConfiguration.members.has(4)).toBe(true)
    harness.markDurable(z(1, 3)).takeLog()
    expect(harness.ack(4, z(1, 3)).takeLog()).toEqual([])
    expect(harness.ack(1, z(1, 3)).takeLog()).toEqual([
      'commit 100000001 to 1,2,4,5',
      'activate 100000002 to 1,2,4,5: 345 led by 3',
      'commit 100000003 to 1,2,4,5',
    ])
    // From now on the new configuration decides.
    harness.propose(4).markDurable(z(1, 4))
    harness.ack(1, z(1, 4)).takeLog()
    expect(harness.ack(5, z(1, 4)).takeLog()).toEqual(['commit 100000004 to 1,2,4,5'])
  })

  it('is not in the NEWLEADER of a learner that joins before it is committed, since the learner would activate it', () => {
    const harness = establishedLeader(five, [1, 2], given)
    const { version } = harness.leader.activeConfiguration
    change(harness, 1, three)
    harness.identify(4, 1)
    const packet = {
      type: PacketType.ackEpoch,
      zxid: 0,
      data: encodeAckEpoch(1),
      auth: null,
    }
    const configurations: string[] = []
    harness.leader.step({ type: 'packet', from: 4, packet })
    for (let work = harness.leader.nextWork(); work !== undefined; work = harness.leader.nextWork())
      if (work.do === 'send' && work.packet.type === PacketType.newLeader)
        configurations.push(decodeConfigurationText(work.packet.data))
    expect(configurations).toEqual([printConfiguration({ ...parseConfiguration(five), version })])
    harness.ack(4, z(1, 0)).takeLog()
    for (const server of [1, 2, 4]) harness.ack(server, z(1, 1))
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual(['activate 100000001 to 1,2,4: 123 led by 3'])
  })

  it('needs a quorum of the new configuration, without which no later proposal is committed', () => {
    const harness = establishedLeader(three, [1, 2], given)
    change(harness, 1, members(3, 4, 5))
    harness.propose(2).markDurable(z(1, 2)).ack(1, z(1, 2))
    expect(harness.ack(2, z(1, 2)).takeLog('commit')).toEqual([])
    harness.join(4)
    expect(harness.ack(4, z(1, 1)).takeLog('activate')).toEqual(['activate 100000001 to 1,2,4: 345 led by 3'])
    expect(harness.ack(4, z(1, 2)).takeLog()).toEqual(['commit 100000002 to 1,2,4'])
  })

  it('needs a quorum of the old configuration too when it is the oldest proposal', () => {
    const harness = establishedLeader(three, [1, 2], given)
    for (const id of [4, 5]) harness.join(id)
    change(harness, 1, members(3, 4, 5))
    harness.markDurable(z(1, 1)).takeLog()
    for (const id of [4, 5]) harness.ack(id, z(1, 1))
    expect(harness.takeLog()).toEqual([])
    expect(harness.ack(2, z(1, 1)).takeLog()).toEqual(['activate 100000001 to 1,2,4,5: 345 led by 3'])
  })

  it('is rejected while another one is uncommitted', () => {
    const harness = establishedLeader(three, [1], given)
    change(harness, 1, five)
    expect(() => change(harness, 2, three)).toThrow(
      'Expected no reconfig before reconfig 100000001 is committed',
    )
  })

  it('that removes the leader designates the follower with most transactions, and the leader commits nothing more', () => {
    const harness = establishedLeader(three, [1, 2], given)
    change(harness, 1, members(1, 2))
    harness.propose(2).propose(3).markDurable(z(1, 3))
    harness.ack(1, z(1, 3)).takeLog()
    expect(harness.ack(2, z(1, 2)).takeLog()).toEqual(['activate 100000001 to 1,2: 12 led by 1'])
    expect(harness.ack(2, z(1, 3)).takeLog()).toEqual([])
    expect(harness.leader.canPropose).toBe(false)
    harness.step({ type: 'checkLeadership', id: 1 }, { type: 'closed', from: 1 }, { type: 'halfTick' })
    harness.takeLog()
    expect(harness.step({ type: 'closed', from: 2 }, { type: 'halfTick' }).takeLog()).toEqual([
      'left 2',
      'step down: another server leads under the new configuration (1)',
    ])
  })

  it('that removes the leader makes it step down within syncLimit', () => {
    const harness = establishedLeader(three, [1, 2], given)
    change(harness, 1, members(1, 2))
    for (const id of [1, 2]) harness.ack(id, z(1, 1))
    harness.takeLog()
    harness.step({ type: 'halfTick' }, { type: 'halfTick' })
    for (let i = 0; i < 3; i++) {
      for (const id of [1, 2]) harness.pong(id)
      expect(harness.takeLog('step down')).toEqual([])
      harness.ticks(1)
    }
    expect(harness.step({ type: 'halfTick' }).takeLog('step down')).toEqual([])
    expect(harness.step({ type: 'halfTick' }).takeLog().at(-1)).toBe(
      'step down: another server leads under the new configuration (2)',
    )
  })

  it('that changes the address of the leader designates another server', () => {
    const harness = establishedLeader(three, [1, 2], given)
    change(harness, 1, `${members(1, 2)}\n${member(3, 99)}`)
    harness.markDurable(z(1, 1)).ack(1, z(1, 1))
    expect(harness.takeLog().at(-1)).toBe('activate 100000001 to 1,2: 123 led by 1')
  })

  it('is sent to observers with its transaction', () => {
    const harness = establishedLeader(`${three}\nserver.7=h:70:71:observer`, [1], given)
    harness.join(7, 0, { observer: true })
    change(harness, 1, three)
    harness.markDurable(z(1, 1)).takeLog()
    expect(harness.ack(1, z(1, 1)).takeLog()).toEqual(['activate 100000001 to 1 inform 7: 123 led by 3'])
  })

  it('of the first leader gives a hand-written configuration its version', () => {
    const harness = new LeaderHarness(three, given).step({ type: 'start' })
    harness.identify(1)
    expect(harness.stored('acceptedEpoch', 1).takeLog()).toContain('last seen 100000000')
    harness.ackEpoch(1).stored('currentEpoch', 1)
    expect(harness.ack(1, z(1, 0)).takeLog()).toContain('activate 100000000 led by 3')
    expect(harness.leader.activeConfiguration.version).toBe(z(1, 0))
  })

  it('that was not committed is completed by the next leader with quorums of both configurations', () => {
    const proposed = parseConfiguration(`${members(3, 4, 5)}\nversion=100000005`)
    const harness = new LeaderHarness(`${three}\nversion=100000001`, {
      ...given,
      proposed,
      acceptedEpoch: 1,
      currentEpoch: 1,
      lastZxid: z(1, 5),
    })
    harness.step({ type: 'start' })
    expect(harness.identify(1, 1).takeLog()).toEqual([])
    harness.identify(4, 1).stored('acceptedEpoch', 2).ackEpoch(1, z(1, 5), 1)
    harness.ackEpoch(4, z(1, 5), 1).stored('currentEpoch', 2)
    harness.ack(1, z(2, 0)).takeLog()
    expect(harness.ack(4, z(2, 0)).takeLog()).toEqual([
      'activate 100000005 led by 3',
      'lead 2 from 200000000',
      'upToDate -1 to 1',
      'upToDate -1 to 4',
    ])
  })

  it('that was not committed and adds the next leader is completed by it, which goes on leading', () => {
    const proposed = parseConfiguration(`${members(1, 2, 3, 4)}\nversion=100000005`)
    const harness = new LeaderHarness(`${three}\nversion=100000001`, { ...given, proposed, self: 4 })
    harness.establish(1, 2)
    expect(harness.leader.phase).toBe('broadcast')
    expect(harness.leader.activeConfiguration.version).toBe(z(1, 5))
    expect(harness.leader.canPropose).toBe(true)
    harness.propose(1).markDurable(z(1, 1)).takeLog()
    harness.ack(1, z(1, 1))
    expect(harness.ack(2, z(1, 1)).takeLog('commit')).toEqual(['commit 100000001 to 1,2'])
  })

  it('that was not committed is in NEWLEADER and completed, with and without reconfigEnabled', () => {
    const proposed = parseConfiguration(`${members(1, 2, 3, 4)}\nversion=100000005`)
    for (const reconfigEnabled of [true, false]) {
      const harness = new LeaderHarness(`${three}\nversion=100000001`, { reconfigEnabled, proposed })
      harness.step({ type: 'start' })
      for (const id of [1, 2]) harness.identify(id)
      harness.stored('acceptedEpoch', 1)
      for (const id of [1, 2]) harness.ackEpoch(id)
      harness.stored('currentEpoch', 1)
      const texts: string[] = []
      for (let work = harness.leader.nextWork(); work !== undefined; work = harness.leader.nextWork())
        if (work.do === 'send' && work.packet.type === PacketType.newLeader)
          texts.push(decodeConfigurationText(work.packet.data))
      expect(texts).toEqual(Array(2).fill(printConfiguration(proposed)))
      for (const id of [1, 2]) harness.ack(id, z(1, 0))
      expect(harness.takeLog('activate')).toEqual(['activate 100000005 led by 3'])
      expect(harness.leader.phase).toBe('broadcast')
    }
  })

  it('is none for the first leader of a configuration that has a version', () => {
    const harness = new LeaderHarness(`${three}\nversion=100000001`, given).establish(1)
    expect([harness.leader.phase, harness.leader.activeConfiguration.version]).toEqual(['broadcast', z(1, 1)])
  })

  it.each(['100000001', '100000000'])('that is not newer, of version %s, is not completed', (version) => {
    const proposed = parseConfiguration(`${members(3, 4, 5)}\nversion=${version}`)
    const harness = new LeaderHarness(`${three}\nversion=100000001`, { ...given, proposed })
    expect(harness.leader.lastSeenConfiguration.members.has(4)).toBe(false)
  })

  it('that was not committed and removes the next leader is completed by it, without leading', () => {
    const proposed = parseConfiguration(`${members(1, 2)}\nversion=100000005`)
    const harness = new LeaderHarness(`${three}\nversion=100000001`, {
      ...given,
      proposed,
      acceptedEpoch: 1,
      currentEpoch: 1,
      lastZxid: z(1, 5),
    })
    harness.step({ type: 'start' })
    for (const id of [1, 2]) harness.identify(id, 1)
    harness.stored('acceptedEpoch', 2)
    for (const id of [1, 2]) harness.ackEpoch(id, z(1, 5), 1)
    harness.stored('currentEpoch', 2)
    for (const id of [1, 2]) harness.ack(id, z(2, 0))
    const log = harness.takeLog()
    expect(log).toContain('activate 100000005 led by 2')
    expect(log.filter((line) => line.startsWith('lead '))).toEqual([])
    expect(harness.leader.canPropose).toBe(false)
  })
})
