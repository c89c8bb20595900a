import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { parseConfiguration, printConfiguration } from '../quorum/index.ts'
import { PacketType } from './packets.ts'
import { decodeConfigurationText, encodeAckEpoch } from './payloads.ts'
import { LeaderHarness } from './testing/leader-harness.ts'
import { makeReconfig } from './testing/txn.ts'

const z = makeZxid
const member = (id: number, port = id * 10): string => `server.${id}=h:${port}:${port + 1}:participant`
const members = (...ids: number[]): string => ids.map((id) => member(id)).join('\n')
const three = members(1, 2, 3)
const five = members(1, 2, 3, 4, 5)

const led = (configuration = three, followers = [1], given = {}): LeaderHarness => {
  const desk = new LeaderHarness(configuration, given)
  desk.lead(...followers)
  return desk
}

describe('whoever wants to know whether this leader still is the one', () => {
  it('hears it when a quorum has answered a PING that was sent later', () => {
    const desk = led(five, [1, 2, 4])
    desk.step({ type: 'halfTick' })
    desk.takeLog()
    desk.step({ type: 'confirm', ticket: 1 })
    expect(desk.takeLog()).toEqual([1, 2, 4].map((id) => `ping 100000000 to ${id}`))
    // These answer the PING from before.
    desk.pong(1)
    desk.pong(2)
    desk.pong(1)
    expect(desk.takeLog().filter((line) => line.startsWith('confirmed'))).toEqual([])
    desk.pong(2)
    expect(desk.takeLog().filter((line) => line.startsWith('confirmed'))).toEqual(['confirmed 1'])
  })

  it('does not hear it from answers to PINGs that were never sent', () => {
    const desk = led(three, [1])
    for (let i = 0; i < 3; i++) desk.pong(1)
    desk.step({ type: 'confirm', ticket: 1 })
    expect(desk.takeLog().filter((line) => line.startsWith('confirmed'))).toEqual([])
    desk.pong(1)
    expect(desk.takeLog()).toContain('confirmed 1')
  })

  it('shares one round with all who wait, and begins the next when it is done', () => {
    const desk = led(three, [1])
    for (const ticket of [1, 2, 3]) desk.step({ type: 'confirm', ticket })
    expect(desk.takeLog()).toEqual(['ping 100000000 to 1'])
    desk.pong(1)
    expect(desk.takeLog()).toEqual(['confirmed 1', 'deliver ping of 1', 'ping 100000000 to 1'])
    desk.pong(1)
    expect(desk.takeLog()).toEqual(['confirmed 2', 'confirmed 3', 'deliver ping of 1'])
    desk.pong(1)
    expect(desk.takeLog()).toEqual(['deliver ping of 1'])
  })

  it('waits for what was proposed before, and not for what comes after', () => {
    const desk = led(three, [1])
    desk.propose(1)
    desk.step({ type: 'confirm', ticket: 1 })
    desk.propose(2)
    desk.pong(1)
    desk.ack(1, z(1, 1))
    desk.takeLog()
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual(['commit 100000001 to 1', 'confirmed 1'])
  })

  it('hears it from followers that came after the round began, when others left', () => {
    const desk = led(three, [1])
    desk.step({ type: 'confirm', ticket: 1 })
    desk.join(2, 0)
    desk.step({ type: 'closed', from: 1 }, { type: 'halfTick' })
    desk.takeLog()
    desk.pong(2)
    expect(desk.takeLog()).toContain('confirmed 1')
  })

  it('hears it at once where there is one voter', () => {
    const desk = new LeaderHarness('server.3=h:1:2')
    desk.lead()
    desk.step({ type: 'confirm', ticket: 1 })
    expect(desk.takeLog()).toEqual(['confirmed 1'])
  })
})

describe('leadership that is handed over', () => {
  it('goes to the highest id that has everything, once everything is committed', () => {
    const desk = led(five, [1, 2, 4])
    desk.propose(1)
    desk.takeLog()
    desk.step({ type: 'transfer' })
    expect(desk.leader.canPropose).toBe(false)
    desk.leader.markDurable(z(1, 1))
    for (const id of [1, 2]) desk.ack(id, z(1, 1))
    desk.takeLog()
    desk.step({ type: 'halfTick' })
    expect(desk.takeLog().at(-1)).toBe('stop: leadership is handed over (2)')
  })

  it('does not go to who has no weight, whom nobody would elect', () => {
    const six = `${five}\nserver.6=h:11:12\ngroup.1=1:2:3\ngroup.2=4:5:6\nweight.6=0`
    const desk = led(six, [1, 2, 4, 5, 6])
    desk.step({ type: 'transfer' })
    expect(desk.takeLog()).toEqual(['stop: leadership is handed over (5)'])
  })

  it('goes at once when nothing is on its way', () => {
    const desk = led(five, [1, 2, 4])
    desk.step({ type: 'transfer' })
    expect(desk.takeLog()).toEqual(['stop: leadership is handed over (4)'])
  })

  it('stays where it is when the others are no quorum, or when nobody catches up in time', () => {
    const desk = led(three, [1])
    desk.step({ type: 'transfer' })
    expect(desk.takeLog()).toEqual([expect.stringMatching(/^warn: .*no quorum without this server/)])
    desk.join(2)
    desk.propose(1)
    desk.step({ type: 'transfer' })
    for (let i = 0; i < 5; i++) {
      for (const id of [1, 2]) desk.pong(id)
      desk.ticks(1)
    }
    expect(desk.takeLog()).toContain('warn: Leadership is not handed over: no follower caught up in time')
    expect(desk.leader.canPropose).toBe(true)
  })
})

describe('a change of the configuration', () => {
  const given = { reconfigEnabled: true }
  const change = (desk: LeaderHarness, counter: number, text: string): void =>
    desk.leader.propose(
      z(1, counter),
      makeReconfig(z(1, counter), `${text}\nversion=${(0x1_0000_0000 + counter).toString(16)}`),
    )

  it('takes a quorum of both, and so does all that comes behind it until then', () => {
    const desk = led(three, [1, 2], given)
    for (const id of [4, 5]) desk.join(id)
    desk.takeLog()
    desk.propose(1)
    change(desk, 2, members(3, 4, 5))
    desk.propose(3)
    expect(desk.leader.lastSeenConfiguration.members.has(4)).toBe(true)
    desk.leader.markDurable(z(1, 3))
    desk.takeLog()
    desk.ack(4, z(1, 3))
    expect(desk.takeLog()).toEqual([])
    desk.ack(1, z(1, 3))
    expect(desk.takeLog()).toEqual([
      'commit 100000001 to 1,2,4,5',
      'activate 100000002 to 1,2,4,5: 345 led by 3',
      'commit 100000003 to 1,2,4,5',
    ])
    // From now on the new members decide.
    desk.propose(4)
    desk.leader.markDurable(z(1, 4))
    desk.ack(1, z(1, 4))
    desk.takeLog()
    desk.ack(5, z(1, 4))
    expect(desk.takeLog()).toEqual(['commit 100000004 to 1,2,4,5'])
  })

  it('is not what a learner comes to until it is committed, which brings a configuration into force that no quorum has', () => {
    const desk = led(five, [1, 2], given)
    const { version } = desk.leader.activeConfiguration
    change(desk, 1, three)
    desk.identify(4, 1)
    const packet = {
      type: PacketType.ackEpoch,
      zxid: 0,
      data: encodeAckEpoch(1),
      auth: null,
    }
    const told = desk.leader
      .step({ type: 'packet', from: 4, packet })
      .flatMap((work) =>
        work.do === 'send' && work.packet.type === PacketType.newLeader
          ? [decodeConfigurationText(work.packet.data)]
          : [],
      )
    expect(told).toEqual([printConfiguration({ ...parseConfiguration(five), version })])
    desk.ack(4, z(1, 0))
    desk.takeLog()
    for (const server of [1, 2, 4]) desk.ack(server, z(1, 1))
    desk.leader.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual(['activate 100000001 to 1,2,4: 123 led by 3'])
  })

  it('takes a quorum of the old members too where nothing is before it on its way', () => {
    const desk = led(three, [1, 2], given)
    for (const id of [4, 5]) desk.join(id)
    change(desk, 1, members(3, 4, 5))
    desk.leader.markDurable(z(1, 1))
    desk.takeLog()
    for (const id of [4, 5]) desk.ack(id, z(1, 1))
    expect(desk.takeLog()).toEqual([])
    desk.ack(2, z(1, 1))
    expect(desk.takeLog()).toEqual(['activate 100000001 to 1,2,4,5: 345 led by 3'])
  })

  it('is one at a time', () => {
    const desk = led(three, [1], given)
    change(desk, 1, five)
    expect(() => change(desk, 2, three)).toThrow(
      'Expected no change of the configuration before 100000001 is committed',
    )
  })

  it('that removes the leader names the follower that has most, and the leader commits nothing more', () => {
    const desk = led(three, [1, 2], given)
    change(desk, 1, members(1, 2))
    desk.propose(2)
    desk.propose(3)
    desk.leader.markDurable(z(1, 3))
    desk.ack(1, z(1, 3))
    desk.takeLog()
    desk.ack(2, z(1, 2))
    expect(desk.takeLog()).toEqual(['activate 100000001 to 1,2: 12 led by 1'])
    desk.ack(2, z(1, 3))
    expect(desk.takeLog()).toEqual([])
    expect(desk.leader.canPropose).toBe(false)
    desk.step({ type: 'confirm', ticket: 1 }, { type: 'closed', from: 1 }, { type: 'halfTick' })
    desk.takeLog()
    desk.step({ type: 'closed', from: 2 }, { type: 'halfTick' })
    expect(desk.takeLog()).toEqual(['left 2', 'stop: another server leads under the new configuration (1)'])
  })

  it('that removes the leader does not keep it waiting for ever', () => {
    const desk = led(three, [1, 2], given)
    change(desk, 1, members(1, 2))
    for (const id of [1, 2]) desk.ack(id, z(1, 1))
    for (let i = 0; i < 6; i++) {
      for (const id of [1, 2]) desk.pong(id)
      desk.ticks(1)
    }
    expect(desk.takeLog().at(-1)).toBe('stop: another server leads under the new configuration (2)')
  })

  it('that moves the leader is led by another one too', () => {
    const desk = led(three, [1, 2], given)
    change(desk, 1, `${members(1, 2)}\n${member(3, 99)}`)
    for (const id of [1, 2]) desk.ack(id, z(1, 1))
    expect(desk.takeLog().at(-1)).toBe('activate 100000001 to 1,2: 123 led by 2')
  })

  it('reaches observers with its transaction', () => {
    const desk = led(`${three}\nserver.7=h:70:71:observer`, [1], given)
    desk.join(7, 0, { observer: true })
    change(desk, 1, three)
    desk.leader.markDurable(z(1, 1))
    desk.takeLog()
    desk.ack(1, z(1, 1))
    expect(desk.takeLog()).toEqual(['activate 100000001 to 1 inform 7: 123 led by 3'])
  })

  it('gives a configuration that was written by hand its first version', () => {
    const desk = new LeaderHarness(three, given)
    desk.step({ type: 'start' })
    desk.identify(1)
    desk.stored('acceptedEpoch', 1)
    expect(desk.takeLog()).toContain('last seen 100000000')
    desk.ackEpoch(1)
    desk.stored('currentEpoch', 1)
    desk.ack(1, z(1, 0))
    expect(desk.takeLog()).toContain('activate 100000000 led by 3')
    expect(desk.leader.activeConfiguration.version).toBe(z(1, 0))
  })

  it('that was seen and not finished is completed by the next leader, with quorums of both', () => {
    const proposed = parseConfiguration(`${members(3, 4, 5)}\nversion=100000005`)
    const desk = new LeaderHarness(`${three}\nversion=100000001`, {
      ...given,
      proposed,
      acceptedEpoch: 1,
      currentEpoch: 1,
      lastZxid: z(1, 5),
    })
    desk.step({ type: 'start' })
    desk.identify(1, 1)
    expect(desk.takeLog()).toEqual([])
    desk.identify(4, 1)
    desk.stored('acceptedEpoch', 2)
    desk.ackEpoch(1, z(1, 5), 1)
    desk.ackEpoch(4, z(1, 5), 1)
    desk.stored('currentEpoch', 2)
    desk.ack(1, z(2, 0))
    desk.takeLog()
    desk.ack(4, z(2, 0))
    expect(desk.takeLog()).toEqual([
      'activate 100000005 led by 3',
      'lead 2 from 200000000',
      'upToDate -1 to 1',
      'upToDate -1 to 4',
    ])
  })

  it('that was seen and removes this leader is completed, and then it leaves', () => {
    const proposed = parseConfiguration(`${members(1, 2)}\nversion=100000005`)
    const desk = new LeaderHarness(`${three}\nversion=100000001`, {
      ...given,
      proposed,
      acceptedEpoch: 1,
      currentEpoch: 1,
      lastZxid: z(1, 5),
    })
    desk.step({ type: 'start' })
    for (const id of [1, 2]) desk.identify(id, 1)
    desk.stored('acceptedEpoch', 2)
    for (const id of [1, 2]) desk.ackEpoch(id, z(1, 5), 1)
    desk.stored('currentEpoch', 2)
    for (const id of [1, 2]) desk.ack(id, z(2, 0))
    const said = desk.takeLog()
    expect(said).toContain('activate 100000005 led by 2')
    expect(said.filter((line) => line.startsWith('lead '))).toEqual([])
    expect(desk.leader.canPropose).toBe(false)
  })
})
