import { describe, expect, it } from 'vitest'
import { parseConfiguration, printConfiguration, type EnsembleConfiguration } from '../quorum/index.ts'
import { NO_VALUE, type ElectionState, type Notification, type PeerState, type Vote } from './index.ts'
import { ElectionHarness, ensemble, vote } from './testing/election-harness.ts'
import { isSameVote, type ReceivedVote } from './vote.ts'

const min = NO_VALUE.toString(16)

describe('a looking server', () => {
  it('starts the next round and sends a vote for itself to every other voter', () => {
    const harness = new ElectionHarness(2).look({ zxid: 0x100000005, epoch: 1 })
    expect(harness.sent).toEqual(['1: looking 2@1 100000005 1', '3: looking 2@1 100000005 1'])
    expect(harness.otherWork).toEqual(['resend in 200'])
    expect(harness.look().sent).toEqual(['1: looking 2@2 0 0', '3: looking 2@2 0 0'])
  })

  it('votes for no server when it is an observer', () => {
    const harness = new ElectionHarness(4).look({
      zxid: 7,
      epoch: 1,
      active: ensemble([1, 2], 'server.4=h4:1:2:observer'),
    })
    expect(harness.sent[0]).toBe(`1: looking ${NO_VALUE}@1 ${min} ${NO_VALUE}`)
  })

  it('sends its zxid and epoch without a candidate when the configuration does not contain it', () => {
    const harness = new ElectionHarness(9).look({ zxid: 7, epoch: 1 })
    expect(harness.sent[0]).toBe(`1: looking ${NO_VALUE}@1 7 1`)
  })

  it('leads at once when it is the only voter', () => {
    expect(new ElectionHarness(1).look({ active: ensemble([1]) }).otherWork).toContain('leading 1')
  })

  it('does not lead alone on data that it does not trust, not even with an oracle', () => {
    const alone = new ElectionHarness(1).look({ active: ensemble([1]), zxid: -1 })
    expect(alone.otherWork).toEqual(['resend in 200'])
    expect(alone.timeout('resend').otherWork).toEqual(['resend in 400'])
    const two = new ElectionHarness(1, { oracle: true }).look({ active: ensemble([1, 2]), zxid: -1 })
    two.step({ type: 'oracle', canLeadAlone: true })
    expect(two.timeout('resend').otherWork).toEqual(['resend in 400'])
  })

  it('begins the next round once it has sent the same vote for another server five times in vain', () => {
    const active = ensemble([1, 2, 3, 4])
    const harness = new ElectionHarness(1).look({ zxid: 5, epoch: 1, active })
    harness.receive(3, { vote: vote(3, 1, 9, 99) })
    for (let i = 0; i < 4; i++) expect(harness.timeout('resend').sent[0]).toBe('2: looking 3@1 9 99')
    expect(harness.timeout('resend').sent).toEqual([2, 3, 4].map((id) => `${id}: looking 1@2 5 1`))
    expect(harness.otherWork).toEqual(['resend in 200'])
    for (const id of [2, 4]) harness.receive(id, { vote: vote(1, 2, 5, 1) })
    expect(harness.otherWork).toContain('finalize in 200')
    const own = new ElectionHarness(2).look({ zxid: 5, epoch: 1 })
    for (let i = 0; i < 20; i++) own.timeout('resend')
    expect(own.sent[0], 'its own vote does not mislead it').toBe('1: looking 2@1 5 1')
  })

  it('ignores notifications before the first look', () => {
    expect(new ElectionHarness(1).receive(2, { vote: vote(2) }).work).toEqual([])
  })
})

describe('a vote received while looking', () => {
  it.each([
    ['a higher epoch', vote(1, 1, 0, 3)],
    ['a higher zxid in the same epoch', vote(1, 1, 0x200000009, 2)],
    ['a higher id with the same data', vote(3, 1, 0x200000005, 2)],
  ])('replaces the own vote when it has %s, and is sent to all', (_, better) => {
    const harness = new ElectionHarness(2).look({ zxid: 0x200000005, epoch: 2 }).receive(1, { vote: better })
    const line = `looking ${better.leader}@1 ${better.zxid.toString(16)} ${better.epoch}`
    expect(harness.sent).toEqual([`1: ${line}`, `3: ${line}`])
  })

  it.each([
    ['a lower epoch with a higher zxid', vote(3, 1, 0x300000000, 1)],
    ['a lower zxid with a higher id', vote(3, 1, 0x200000004, 2)],
    ['a lower id', vote(1, 1, 0x200000005, 2)],
  ])('does not replace the own vote when it has %s, and is answered once', (_, worse) => {
    const harness = new ElectionHarness(2).look({ zxid: 0x200000005, epoch: 2 }).receive(3, { vote: worse })
    expect(harness.sent).toEqual(['3: looking 2@1 200000005 2'])
    expect(harness.receive(3, { vote: worse }).sent).toEqual([])
  })

  it('is not answered when it equals the own vote or is better', () => {
    const harness = new ElectionHarness(2).look()
    expect(harness.receive(3, { vote: vote(2) }).sent).toEqual([])
    expect(harness.receive(1, { vote: vote(3) }).sent).toEqual(['1: looking 3@1 0 0', '3: looking 3@1 0 0'])
  })

  it('is ignored when its candidate has weight 0', () => {
    const active = ensemble([1, 2, 3, 4], 'group.1=1:2:3\ngroup.2=4\nweight.4=0')
    const harness = new ElectionHarness(1).look({ active }).receive(4, { vote: vote(4, 1, 99, 9) })
    expect(harness.sent).toEqual([])
  })

  it('of a later round moves the server to that round, where it votes for itself again', () => {
    const harness = new ElectionHarness(2)
      .look({ zxid: 5, active: ensemble([1, 2, 3, 4, 5]) })
      .receive(1, { vote: vote(3, 1, 9) })
    harness.receive(1, { vote: vote(1, 4, 3) })
    expect(harness.sent).toEqual([1, 3, 4, 5].map((id) => `${id}: looking 2@4 5 0`))
    expect(harness.election.round).toBe(4)
  })

  it('of a later round is adopted when it is better than a vote for the server itself', () => {
    const harness = new ElectionHarness(2).look({ zxid: 5 }).receive(1, { vote: vote(3, 4, 9) })
    expect(harness.sent).toEqual(['1: looking 3@4 9 0', '3: looking 3@4 9 0'])
  })

  it('of a later round voids the votes of earlier rounds', () => {
    const harness = new ElectionHarness(2).look().receive(1, { vote: vote(2) })
    expect(harness.otherWork).toContain('finalize in 200')
    expect(harness.receive(3, { vote: vote(3, 2, 1) }).otherWork).toContain('finalize in 200')
    const other = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    other.receive(2, { vote: vote(5) }).receive(3, { vote: vote(5, 2) })
    expect(other.otherWork).toEqual([])
    expect(other.receive(2, { vote: vote(5, 2) }).otherWork).toContain('finalize in 200')
  })

  it('of an earlier round is answered with the own vote and does not count', () => {
    const harness = new ElectionHarness(1)
      .look()
      .look()
      .receive(3, { vote: vote(3, 1, 99) })
    expect(harness.sent).toEqual(['3: looking 1@2 0 0'])
    expect(harness.election.vote.leader).toBe(1)
  })

  it('is ignored when its candidate is no voter', () => {
    expect(new ElectionHarness(1).look().receive(2, { vote: vote(8, 1, 99, 9) }).work).toEqual([])
    const later = new ElectionHarness(1).look().receive(2, { vote: vote(8, 5, 99, 9) })
    expect([later.work, later.election.round]).toEqual([[], 1])
  })

  it('is ignored when its sender does not trust its data', () => {
    for (const epoch of [0, 9])
      expect(new ElectionHarness(1).look().receive(2, { vote: vote(2, 1, -1, epoch) }).work).toEqual([])
  })

  it('does not count for a server that does not trust its own data', () => {
    const harness = new ElectionHarness(1).look({ zxid: -1 })
    expect(harness.receive(2, { vote: vote(2) }).receive(3, { vote: vote(2) }).work).toEqual([])
  })

  it('from an observing server is ignored', () => {
    expect(new ElectionHarness(1).look().receive(2, { state: 'observing', vote: vote(3) }).work).toEqual([])
  })

  it('is ignored when it comes from the server itself', () => {
    expect(new ElectionHarness(1).look().receive(1, { vote: vote(3, 1, 9) }).work).toEqual([])
  })
})

describe('a quorum for the own vote', () => {
  const supported = (): ElectionHarness => new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })

  it('decides after the wait for better votes', () => {
    const harness = supported().receive(4, { vote: vote(4) })
    expect(harness.otherWork).toEqual([])
    expect(harness.receive(2, { vote: vote(4) }).otherWork).toEqual(['finalize in 200'])
    expect(harness.timeout('finalize').otherWork).toEqual(['following 4'])
    expect(harness.election.state).toBe('following')
  })

  it('decides at once when every voter agrees', () => {
    const harness = supported().receive(5, { vote: vote(5) })
    for (const id of [2, 3]) harness.receive(id, { vote: vote(5) })
    expect(harness.otherWork).not.toContain('following 5')
    expect(harness.receive(4, { vote: vote(5) }).otherWork).toContain('following 5')
  })

  it('decides at once when every reachable voter agrees', () => {
    const harness = supported()
      .setReachable(5, false)
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
    expect(harness.otherWork).toEqual(['finalize in 200'])
    expect(harness.setReachable(3, false).otherWork).toContain('following 4')
    const other = supported().setReachable(5, false).setReachable(3, false).setReachable(5, true)
    expect(other.receive(4, { vote: vote(4) }).receive(2, { vote: vote(4) }).otherWork).toEqual([
      'finalize in 200',
    ])
    expect(other.setReachable(5, false).otherWork).toContain('following 4')
  })

  it('is needed to lead, even when every other voter is unreachable', () => {
    const harness = supported()
    for (const id of [2, 3, 4, 5]) expect(harness.setReachable(id, false).work).toEqual([])
    expect(harness.election.state).toBe('looking')
  })

  it('waits while a reachable voter has a different vote', () => {
    const harness = supported()
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
      .setReachable(5, false)
    expect(harness.receive(3, { vote: vote(3) }).otherWork).toEqual([])
    expect(harness.timeout('finalize').otherWork).toEqual(['following 4'])
  })

  it('makes the candidate itself lead', () => {
    expect(
      new ElectionHarness(3)
        .look()
        .receive(1, { vote: vote(3) })
        .timeout('finalize').otherWork,
    ).toEqual(['leading 3'])
  })

  it('makes an observer observe', () => {
    const active = ensemble([1, 2], 'server.4=h4:1:2:observer')
    const harness = new ElectionHarness(4)
      .look({ active })
      .receive(1, { vote: vote(2) })
      .receive(2, { vote: vote(2) })
    expect(harness.otherWork).toContain('observing 2')
  })

  it('makes a participant outside the configuration follow, without counting its vote', () => {
    const harness = new ElectionHarness(9).look().receive(2, { vote: vote(2) })
    expect(harness.otherWork).toEqual([])
    expect(harness.receive(1, { vote: vote(2) }).timeout('finalize').otherWork).toEqual(['following 2'])
  })

  it('is dropped when a better vote arrives during the wait', () => {
    const harness = supported()
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
    harness.receive(5, { vote: vote(5) })
    expect(harness.otherWork).toEqual(['resend in 200'])
    expect(harness.timeout('finalize').work).toEqual([])
    expect(harness.receive(2, { vote: vote(5) }).timeout('finalize').otherWork).toEqual(['following 5'])
  })

  it('is neither dropped nor delayed by a worse vote', () => {
    const harness = supported()
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
    expect(harness.receive(3, { vote: vote(3, 7) }).work).toEqual([])
    expect(harness.receive(5, { vote: vote(5, 0) }).otherWork).toEqual([])
    expect(harness.timeout('finalize').otherWork).toEqual(['following 4'])
  })

  it('must agree on round, zxid and epoch', () => {
    const harness = supported().receive(4, { vote: vote(4, 1, 7, 1) })
    expect(harness.receive(2, { vote: vote(4, 1, 7, 0) }).otherWork).toEqual([])
    expect(harness.receive(3, { vote: vote(4, 1, 6, 1) }).otherWork).toEqual([])
    expect(harness.receive(5, { vote: vote(4, 1, 7, 1) }).otherWork).toEqual(['finalize in 200'])
  })

  it('needs a majority of the groups of a hierarchy', () => {
    const harness = new ElectionHarness(1).look({
      active: ensemble([1, 2, 3, 4, 5, 6], 'group.1=1:2:3\ngroup.2=4:5:6'),
    })
    for (const id of [2, 3, 6]) harness.receive(id, { vote: vote(6) })
    expect(harness.otherWork).toEqual([])
    expect(harness.receive(5, { vote: vote(6) }).otherWork).toEqual(['finalize in 200'])
  })
})

describe('a notification timeout', () => {
  it('repeats the vote, opens connections and doubles the interval', () => {
    const harness = new ElectionHarness(1).look()
    const waits: string[] = []
    for (let i = 0; i < 10; i++) waits.push(...harness.timeout('resend').otherWork)
    expect(waits.slice(0, 3)).toEqual(['resend in 400', 'resend in 800', 'resend in 1600'])
    expect(waits.at(-1)).toBe('resend in 60000')
    expect(harness.sent).toEqual(['2: looking 1@1 0 0', '3: looking 1@1 0 0'])
    expect(harness.work).toContainEqual({ do: 'connect', to: [2, 3] })
  })

  it('returns to the minimum interval when the vote changes', () => {
    const harness = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (let i = 0; i < 5; i++) harness.timeout('resend')
    expect(harness.receive(2, { vote: vote(2) }).otherWork).toEqual(['resend in 200'])
    expect(harness.timeout('resend').otherWork).toEqual(['resend in 400'])
  })

  it('returns to the minimum interval in the next election', () => {
    expect(new ElectionHarness(1).look().timeout('resend').look().otherWork).toEqual(['resend in 200'])
  })
})

describe('a server with a role', () => {
  const follower = (): ElectionHarness =>
    new ElectionHarness(1)
      .look()
      .look()
      .receive(3, { vote: vote(3, 2) })
      .timeout('finalize')

  it('answers a looking server with its decided vote and the round of that vote', () => {
    const harness = follower()
    for (const attempt of ['first', 'repeated'])
      expect(harness.receive(2, { vote: vote(2, 9) }).sent, attempt).toEqual(['2: following 3@2 0 0'])
  })

  it('answers with the epoch in which its leader leads', () => {
    const harness = follower().step({ type: 'established', epoch: 4 })
    expect(harness.receive(2, { vote: vote(2) }).sent).toEqual(['2: following 3@2 0 4'])
  })

  it('does not answer other servers with a role', () => {
    expect(follower().receive(2, { state: 'following', vote: vote(3, 2) }).work).toEqual([])
    expect(follower().receive(8, { state: 'observing', vote: vote(3, 2) }).work).toEqual([])
  })

  it('ignores timers and better votes', () => {
    const harness = follower()
    expect([harness.timeout('resend').work, harness.timeout('finalize').work]).toEqual([[], []])
    harness.receive(2, { vote: vote(2, 99, 99, 99) })
    expect([harness.election.state, harness.election.vote.leader]).toEqual(['following', 3])
  })

  it('sends a configuration that was activated since', () => {
    const harness = follower().step({
      type: 'configured',
      configurations: { active: ensemble([1, 3], 'version=7') },
    })
    harness.receive(2, { vote: vote(2, 9) })
    expect(harness.work).toMatchObject([
      { do: 'send', configuration: printConfiguration(ensemble([1, 3], 'version=7')) },
    ])
  })
})

describe('a non-voter', () => {
  it('gets a reply while it looks and does not count', () => {
    const harness = new ElectionHarness(1)
      .look()
      .look()
      .receive(9, { vote: vote(3, 7, 99, 9) })
    expect(harness.sent).toEqual(['9: looking 1@2 0 0'])
    expect(harness.election.round).toBe(2)
  })

  it('gets a reply to each vote when a thousand other non-voters were answered in the interval', () => {
    const harness = new ElectionHarness(1).look()
    for (let id = 10; id < 1010; id++) harness.receive(id, { vote: vote(NO_VALUE) })
    const replies = [1010, 1010, 10].map((id) => harness.receive(id, { vote: vote(NO_VALUE) }).sent.length)
    expect(replies).toEqual([1, 1, 0])
  })

  it('gets a reply when it sends a newer configuration', () => {
    const harness = new ElectionHarness(1, { adoptsConfigurations: true }).look()
    const configuration = printConfiguration(ensemble([9], 'version=100000000'))
    expect(harness.receive(9, { vote: vote(NO_VALUE), configuration }).sent).toEqual(['9: looking 1@1 0 0'])
  })

  it('gets one reply per interval to the same vote', () => {
    const harness = new ElectionHarness(1).look()
    const ask = (): string[] => harness.receive(9, { vote: vote(NO_VALUE) }).sent
    expect([ask().length, ask().length]).toEqual([1, 0])
    harness.timeout('resend')
    expect(ask().length).toBe(1)
  })

  it.each([
    ['whose configurations do not contain each other', [1, 3], [2, 3]],
    ['of which one configuration contains the other server', [1, 2], [2, 3]],
  ])('does not exchange replies without end with another looking server, for two %s', (_, ofOne, ofTwo) => {
    const harnesses = [
      new ElectionHarness(1).look({ active: ensemble(ofOne) }).look({ active: ensemble(ofOne) }),
      new ElectionHarness(2).look({ active: ensemble(ofTwo) }),
    ]
    let from = 0
    let sent = { state: harnesses[0]!.election.state, vote: harnesses[0]!.election.vote }
    let exchanges = 0
    for (; exchanges < 100; exchanges++) {
      const { work } = harnesses[1 - from]!.receive(from + 1, sent)
      const reply = work.find((one) => one.do === 'send' && one.to === from + 1)
      if (reply?.do !== 'send') break
      sent = reply
      from = 1 - from
    }
    expect(exchanges).toBeLessThan(5)
  })

  it('gets no reply when it has a role', () => {
    expect(new ElectionHarness(1).look().receive(9, { state: 'observing', vote: vote(3) }).work).toEqual([])
  })
})

describe('an established ensemble', () => {
  it('is joined when a quorum follows and the leader confirms it, whatever its round', () => {
    const harness = new ElectionHarness(3).look({ zxid: 99, epoch: 2 })
    expect(harness.receive(1, { state: 'following', vote: vote(2, 8, 6, 1) }).otherWork).toEqual([])
    expect(harness.receive(2, { state: 'leading', vote: vote(2, 8, 6, 1) }).otherWork).toEqual([
      'following 2',
    ])
    expect(harness.election.round).toBe(8)
  })

  it('is joined by a server that waits for a better vote, whatever its round', () => {
    const harness = new ElectionHarness(1).look().look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (const id of [2, 3]) harness.receive(id, { vote: vote(3, 2) })
    expect(harness.otherWork).toEqual(['finalize in 200'])
    for (const id of [2, 3]) harness.receive(id, { state: 'following', vote: vote(5, 1, 9, 9) })
    expect(harness.receive(5, { state: 'leading', vote: vote(5, 1, 9, 9) }).otherWork).toEqual([
      'following 5',
    ])
  })

  it('is joined in its round when that is 2^20 away', () => {
    const round = 2 ** 20 + 1
    const harness = new ElectionHarness(3).look()
    harness.receive(1, { state: 'following', vote: vote(2, round) })
    harness.receive(2, { state: 'leading', vote: vote(2, round) })
    expect([harness.election.state, harness.election.round]).toEqual(['following', round])
  })

  it('is not led by a server outside the configuration, whatever voters send', () => {
    const harness = new ElectionHarness(9).look()
    for (const id of [1, 2, 3]) harness.receive(id, { state: 'following', vote: vote(9, 1) })
    expect(harness.election.state).toBe('looking')
  })

  it("is not joined without the leader's own notification, since the leader may be dead", () => {
    const harness = new ElectionHarness(4).look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (const id of [1, 2, 3]) harness.receive(id, { state: 'following', vote: vote(5, 8) })
    expect(harness.election.state).toBe('looking')
    expect(harness.receive(5, { state: 'leading', vote: vote(5, 8) }).otherWork).toEqual(['following 5'])
  })

  it('is not joined when only the leader has sent a notification', () => {
    expect(
      new ElectionHarness(3).look().receive(2, { state: 'leading', vote: vote(2, 8) }).otherWork,
    ).toEqual([])
  })

  it('may disagree on zxid and round, but not on the epoch', () => {
    const five = { active: ensemble([1, 2, 3, 4, 5]) }
    const harness = new ElectionHarness(3).look(five)
    harness
      .receive(1, { state: 'following', vote: vote(2, 8, 6, 1) })
      .receive(2, { state: 'leading', vote: vote(2, 7, 5, 2) })
    expect(harness.receive(4, { state: 'following', vote: vote(2, 3, 9, 1) }).otherWork).toEqual([])
    expect(harness.receive(5, { state: 'following', vote: vote(2, 3, 9, 2) }).otherWork).toEqual([])
    expect(harness.receive(1, { state: 'following', vote: vote(2, 8, 6, 2) }).otherWork).toEqual([
      'following 2',
    ])
  })

  it('may disagree on the epoch with a server that sends no version', () => {
    const harness = new ElectionHarness(3)
      .look()
      .receive(1, { state: 'following', version: 0, vote: vote(2, 8, 6, 1) })
    expect(harness.receive(2, { state: 'leading', vote: vote(2, 8, 6, 2) }).otherWork).toEqual([
      'following 2',
    ])
  })

  it('of the current round is joined whatever epochs its members send', () => {
    const harness = new ElectionHarness(3).look().receive(1, { state: 'following', vote: vote(2, 1, 6, 1) })
    expect(harness.receive(2, { state: 'leading', vote: vote(2, 1, 6, 2) }).otherWork).toEqual([
      'following 2',
    ])
  })

  it('of the current round is not joined with votes of an earlier round', () => {
    const harness = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    harness.receive(2, { state: 'following', vote: vote(5, 1, 6, 1) })
    // A later round begins.
    harness.receive(3, { vote: vote(3, 2) })
    harness.receive(4, { state: 'following', vote: vote(5, 2, 6, 2) })
    expect(harness.receive(5, { state: 'leading', vote: vote(5, 2, 6, 2) }).otherWork).toEqual([])
    expect(harness.receive(2, { state: 'following', vote: vote(5, 2, 6, 2) }).otherWork).toEqual([
      'following 5',
    ])
  })

  it('is led by the server itself when the others follow it in its current round, and not in another one', () => {
    const five = { active: ensemble([1, 2, 3, 4, 5]) }
    const harness = new ElectionHarness(5).look(five)
    for (const id of [1, 2, 3]) harness.receive(id, { state: 'following', vote: vote(5, 1) })
    expect(harness.election.state).toBe('leading')
    const restarted = new ElectionHarness(5).look(five)
    for (const id of [1, 2, 3]) restarted.receive(id, { state: 'following', vote: vote(5, 6) })
    expect(restarted.election.state).toBe('looking')
  })

  it('is joined by a server that does not trust its data', () => {
    const harness = new ElectionHarness(3)
      .look({ zxid: -1 })
      .receive(1, { state: 'following', vote: vote(2, 8) })
    expect(harness.receive(2, { state: 'leading', vote: vote(2, 8) }).otherWork).toEqual(['following 2'])
  })
})

describe('a leader that lacks one follower for its quorum', () => {
  const four = ensemble([2, 3, 4, 5])
  const configuration = printConfiguration(four)
  const elected = vote(3, 1, 0x60, 2)
  /** Server 2 has voted for 3, which was elected with that, and has then received the better vote of 4. */
  const undecided = (zxid = 0x60): ElectionHarness =>
    new ElectionHarness(2)
      .look({ zxid, epoch: 2, active: four })
      .receive(3, { vote: elected })
      .receive(4, { vote: vote(4, 1, 0x60, 2) })

  it('is joined by a server that has changed its vote after the election', () => {
    const harness = undecided().receive(3, { state: 'leading', vote: elected, configuration })
    expect(harness.otherWork).toEqual([])
    expect(harness.receive(5, { state: 'following', vote: elected }).otherWork).toEqual(['following 3'])
  })

  it('is joined by a server in a later round', () => {
    const harness = undecided().look({ zxid: 0x60, epoch: 2, active: four })
    harness.receive(5, { state: 'following', vote: elected })
    expect(harness.receive(3, { state: 'leading', vote: elected, configuration }).otherWork).toEqual([
      'following 3',
    ])
    expect(harness.election.round).toBe(1)
  })

  it('is not joined by a server that has more than the leader, which would refuse it', () => {
    const harness = undecided(0x61).receive(3, { state: 'leading', vote: elected, configuration })
    expect(harness.receive(5, { state: 'following', vote: elected }).otherWork).toEqual([])
  })

  it('is not joined when it has another configuration', () => {
    const other = printConfiguration(ensemble([1, 2, 3, 5]))
    const harness = undecided().receive(3, { state: 'leading', vote: elected, configuration: other })
    expect(harness.receive(5, { state: 'following', vote: elected }).otherWork).toEqual([])
  })

  it('is not joined when its follower looks for a leader again', () => {
    const harness = undecided().receive(5, { state: 'following', vote: elected })
    harness.receive(5, { vote: vote(5, 1, 0x50, 2) })
    expect(harness.receive(3, { state: 'leading', vote: elected, configuration }).otherWork).toEqual([])
  })

  it('is not joined by a server that does not trust its data, nor by one without a vote', () => {
    for (const [self, zxid] of [
      [2, -1],
      [6, 0x60],
    ] as const) {
      const harness = new ElectionHarness(self).look({ zxid, epoch: 2, active: four })
      harness.receive(3, { state: 'leading', vote: elected, configuration })
      expect(harness.receive(5, { state: 'following', vote: elected }).otherWork).toEqual([])
    }
  })

  it('is not joined by a server that has no vote with it, before its next term', () => {
    const withoutVote = { leader: 3, round: 1 }
    const state = { zxid: 0x60, epoch: 2, active: four }
    const harness = new ElectionHarness(2).step({ type: 'look', state, withoutVote })
    harness.receive(5, { state: 'following', vote: elected })
    expect(harness.receive(3, { state: 'leading', vote: elected, configuration }).otherWork).toEqual([])
    const next = { ...elected, round: 2 }
    expect(harness.receive(3, { state: 'leading', vote: next, configuration }).otherWork).toEqual([
      'following 3',
    ])
  })

  it('is not joined by the server itself, which others follow in another round', () => {
    const harness = new ElectionHarness(3).look({ zxid: 0x60, epoch: 2, active: four })
    const late = vote(3, 6, 0x60, 2)
    for (const from of [2, 5]) harness.receive(from, { state: 'following', vote: late, configuration })
    expect(harness.election.state).toBe('looking')
  })
})

describe('a leader without a follower', () => {
  const three = ensemble([1, 2, 3])
  const four = ensemble([1, 2, 3, 4])
  const leading = (active: EnsembleConfiguration, round = 1): Partial<Notification> & { vote: Vote } => ({
    state: 'leading',
    vote: vote(3, round, 0x60, 2),
    configuration: printConfiguration(active),
  })
  const look = (active: EnsembleConfiguration): ElectionHarness =>
    new ElectionHarness(1).look({ zxid: 0x60, epoch: 2, active })

  it('is joined by a voter that did not reach it in time, which has waited for others to vote with', () => {
    const harness = look(three).receive(3, { vote: vote(3, 1, 0x60, 2) })
    expect(harness.setReachable(2, false).otherWork).toEqual(['following 3'])
    harness.look({ zxid: 0x60, epoch: 2, active: three })
    expect(harness.receive(3, leading(three)).otherWork).toEqual([])
    expect(harness.timeout('resend').sent).toEqual(['2: looking 1@2 60 2', '3: looking 1@2 60 2'])
    expect(harness.receive(3, leading(three)).otherWork).toEqual(['following 3'])
    expect(harness.election.round).toBe(1)
  })

  it('is not joined while those that look are a quorum', () => {
    const harness = look(three).look({ zxid: 0x60, epoch: 2, active: three })
    harness.receive(2, { vote: vote(2, 1, 0x60, 2) }).timeout('resend')
    expect(harness.receive(3, leading(three)).otherWork).toEqual([])
    harness.setReachable(2, false)
    expect(harness.receive(3, leading(three)).otherWork).toEqual(['following 3'])
  })

  it('is joined where another voter looked in the election before alone', () => {
    const harness = look(three).receive(2, { vote: vote(2, 1, 0x60, 2) })
    harness.look({ zxid: 0x60, epoch: 2, active: three }).timeout('resend')
    expect(harness.receive(3, leading(three)).otherWork).toEqual(['following 3'])
  })

  it('is joined by two of four voters that look, while the fourth one is down', () => {
    const harness = look(four).receive(2, { vote: vote(2, 1, 0x60, 2) })
    expect(harness.receive(3, leading(four)).otherWork).toEqual([])
    harness.timeout('resend')
    expect(harness.receive(3, leading(four)).otherWork).toEqual(['following 3'])
  })

  it('is not joined where another voter is needed that does not look, has gone, has a role, or does not join it', () => {
    const other = { vote: vote(2, 1, 0x60, 2) }
    const cases: [string, (harness: ElectionHarness) => void][] = [
      ['silent', () => {}],
      ['gone', (harness) => harness.receive(2, other).setReachable(2, false)],
      ['with a role', (harness) => harness.receive(2, other).receive(2, { ...other, state: 'leading' })],
      ['has a later history', (harness) => harness.receive(2, { vote: vote(2, 1, 0x61, 2) })],
      ['does not trust its data', (harness) => harness.receive(2, { vote: vote(2, 1, -1, 2) })],
      [
        'of Apache ZooKeeper',
        (harness) => {
          const notification = { state: 'looking', version: 2, ...other } as const
          harness.step({ type: 'notification', from: 2, notification, isForeign: true })
        },
      ],
    ]
    for (const [name, prepare] of cases) {
      const harness = look(four)
      prepare(harness)
      harness.timeout('resend')
      expect(harness.receive(3, leading(four)).otherWork, name).toEqual([])
    }
  })

  it('is not joined by a server without a vote, however many look', () => {
    const active = ensemble([1, 2, 3], 'server.4=h4:2888:3888:observer')
    const harness = new ElectionHarness(4).look({ zxid: 0x60, epoch: 2, active })
    harness.receive(2, { vote: vote(2, 1, 0x60, 2) }).timeout('resend')
    expect(harness.receive(3, leading(active)).otherWork).toEqual([])
  })
})

describe('a configuration in a notification', () => {
  const newer = ensemble([1, 2, 3, 4], 'version=100000000')
  const notification = { vote: vote(2), configuration: printConfiguration(newer) }

  it('is adopted when it is newer, and the election restarts with it', () => {
    const harness = new ElectionHarness(1, { adoptsConfigurations: true }).look().receive(2, notification)
    expect(harness.work).toMatchObject([
      { do: 'stop', timer: 'resend' },
      { do: 'configure', from: 2, restart: true, configuration: { version: 0x100000000 } },
    ])
    expect(harness.timeout('resend').work).toEqual([])
    expect(harness.look({ active: newer }).sent.length).toBe(3)
  })

  it('is adopted without a restart when only its version is newer', () => {
    const same = ensemble([1, 2, 3], 'version=5')
    const harness = new ElectionHarness(3, { adoptsConfigurations: true }).look()
    harness.receive(2, { vote: vote(3), configuration: printConfiguration(same) })
    expect(harness.otherWork).toEqual(['configure', 'finalize in 200'])
    expect(harness.receive(1, { vote: vote(1, 0) }).work).toMatchObject([
      { configuration: printConfiguration(same) },
    ])
  })

  it('without a restart leaves the proposed one in force, whose quorum is needed, too', () => {
    const proposed = ensemble([1, 2, 3, 4, 5], 'version=9')
    const harness = new ElectionHarness(3, { adoptsConfigurations: true }).look({ proposed })
    const configuration = printConfiguration(ensemble([1, 2, 3], 'version=5'))
    expect(harness.receive(1, { vote: vote(3), configuration }).otherWork).toEqual(['configure'])
    expect(harness.receive(2, { vote: vote(3), configuration }).otherWork).toEqual(['finalize in 200'])
  })

  it('that restarts the election ends it: votes do not count before the next one', () => {
    const harness = new ElectionHarness(3, { adoptsConfigurations: true }).look().receive(2, notification)
    for (const id of [1, 2]) expect(harness.receive(id, { vote: vote(3) }).work).toEqual([])
    expect(harness.election.state).toBe('looking')
  })

  it('causes no warning when configurations are static and only its version is newer', () => {
    const configuration = printConfiguration(ensemble([1, 2, 3], 'version=5'))
    const harness = new ElectionHarness(3).look().receive(2, { vote: vote(3), configuration })
    expect(harness.otherWork).toEqual(['finalize in 200'])
  })

  it('is ignored when it is older, or when the server has a role', () => {
    const active = ensemble([1, 2, 3], 'version=200000000')
    const harness = new ElectionHarness(1, { adoptsConfigurations: true })
      .look({ active })
      .receive(2, notification)
    expect(harness.otherWork).toEqual(['finalize in 200'])
    expect(harness.timeout('finalize').receive(3, { ...notification, vote: vote(3) }).otherWork).toEqual([])
  })

  it('causes one warning per server and is ignored when configurations are static', () => {
    const harness = new ElectionHarness(3).look().receive(2, { ...notification, vote: vote(3) })
    expect(harness.otherWork).toEqual(['warn', 'finalize in 200'])
    expect(harness.receive(2, { ...notification, vote: vote(3) }).otherWork).toEqual([])
  })

  it('does not void the vote of its sender when it is invalid', () => {
    const harness = new ElectionHarness(3, { adoptsConfigurations: true }).look()
    harness.receive(2, { vote: vote(3), configuration: 'server.1=nonsense' })
    expect(harness.otherWork).toEqual(['warn', 'finalize in 200'])
    expect(harness.work[0]).toMatchObject({ do: 'warn', context: { from: 2 } })
  })

  it('is not parsed when it is longer than that of hundreds of servers, and does not void the vote', () => {
    const harness = new ElectionHarness(3, { adoptsConfigurations: true }).look()
    const members = Array.from({ length: 2000 }, (_, i) => i + 1)
    const configuration = printConfiguration(ensemble(members, 'version=100000000'))
    harness.receive(2, { vote: vote(3), configuration })
    expect(harness.otherWork).toEqual(['warn', 'finalize in 200'])
    const reason = `expected at most 16384 characters, got ${configuration.length}`
    expect(harness.work[0]).toMatchObject({ do: 'warn', context: { from: 2, reason } })
  })
})

describe('a newer configuration in the notification of one voter', () => {
  it('is not parsed when the sender is no voter and has not proved its id', () => {
    const harness = new ElectionHarness(1, { adoptsConfigurations: true }).look()
    const notification = {
      state: 'looking',
      version: 2,
      vote: vote(9),
      configuration: 'server.1=nonsense',
    } as const
    for (const [isAuthenticated, warnings] of [
      [false, 0],
      [true, 1],
    ] as const) {
      harness.step({ type: 'notification', from: 9, notification, isAuthenticated })
      expect(harness.work.filter((work) => work.do === 'warn')).toHaveLength(warnings)
    }
  })

  const active = ensemble([1, 2, 3, 4, 5], 'version=100000000')
  const look = (state: Partial<ElectionState> = {}): ElectionHarness =>
    new ElectionHarness(1, { adoptsConfigurations: true }).look({
      active,
      zxid: 0x1_0000_0005,
      epoch: 1,
      ...state,
    })
  const newer = printConfiguration(ensemble([6], 'version=100000009'))
  const other = printConfiguration(ensemble([7], 'version=100000009'))
  const send = (configuration: string): Pick<Notification, 'configuration'> & { vote: Vote } => ({
    vote: vote(2),
    configuration,
  })

  it('causes a warning and is adopted when a quorum of the voters sends the same', () => {
    const harness = look()
    expect(harness.receive(2, send(newer)).otherWork).toEqual(['warn'])
    expect(harness.receive(2, send(newer)).otherWork).toEqual([])
    expect(harness.receive(3, send(newer)).otherWork).toEqual(['warn'])
    expect(harness.receive(4, send(other)).otherWork).toEqual(['warn'])
    expect(harness.receive(9, send(newer)).otherWork).toEqual([])
    expect(harness.receive(5, send(newer)).otherWork).toEqual(['configure'])
  })

  it('is adopted when a quorum of the voters of a configuration that this server has logged sends it', () => {
    const ofFour = ensemble([1, 2, 3, 4], 'version=100000000')
    const proposed = ensemble([2, 3, 4], 'version=100000009')
    const later = ensemble([2, 3], 'version=10000000a')
    for (const sent of [printConfiguration(proposed), printConfiguration(later)]) {
      const harness = look({ active: ofFour, proposed })
      expect(harness.receive(2, send(sent)).otherWork).toEqual(['warn'])
      expect(harness.receive(1, send(sent)).otherWork).toEqual([])
      expect(harness.receive(3, send(sent)).otherWork).toEqual(['configure'])
    }
  })

  it('does not keep the vote of its sender from counting before a quorum has sent it', () => {
    const better = vote(2, 1, 0x1_0000_0006, 1)
    expect(look().receive(2, { ...send(newer), vote: better }).election.vote).toEqual(better)
  })

  it('is adopted at once from a sender that is authenticated', () => {
    const harness = look().step({
      type: 'notification',
      from: 2,
      notification: { state: 'looking', version: 2, ...send(newer) },
      isAuthenticated: true,
    })
    expect(harness.otherWork).toEqual(['configure'])
  })

  it('counts this server too as long as it has no data and an operator has written its configuration', () => {
    const written = { active: ensemble([1, 2]) }
    expect(look({ ...written, zxid: 0 }).receive(2, send(newer)).otherWork).toEqual(['configure'])
    expect(look(written).receive(2, send(newer)).otherWork).toEqual(['warn'])
    const ofEnsemble = { active: ensemble([1, 2], 'version=100000000') }
    expect(look({ ...ofEnsemble, zxid: 0 }).receive(2, send(newer)).otherWork).toEqual(['warn'])
  })

  it.each([
    ['the only voter', [1], ''],
    ['a quorum by its weight', [1, 2], 'group.1=1:2\nweight.1=3\nweight.2=1\n'],
  ])('does not count a server without data that it makes %s', (_, voters, groups) => {
    const sent = printConfiguration(ensemble(voters, `${groups}version=100000009`))
    const harness = look({ active: ensemble([1, 2, 3]), zxid: 0 })
    expect(harness.receive(2, send(sent)).otherWork).toEqual(['warn'])
    expect(harness.receive(3, send(sent)).otherWork).toEqual(['configure'])
  })
})

describe('a round', () => {
  const far = 2 ** 20 + 2

  it('more than 2^20 ahead is not followed for one voter, and is for a quorum', () => {
    const harness = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    expect(harness.receive(2, { vote: vote(2, far) }).work).toEqual([])
    expect(harness.receive(2, { vote: vote(2, 2 ** 52) }).work).toEqual([])
    expect(harness.receive(3, { vote: vote(3, far) }).work).toEqual([])
    expect(harness.election.round).toBe(1)
    expect(harness.receive(4, { vote: vote(4, far) }).sent).toContain(`5: looking 4@${far} 0 0`)
  })

  it('more than 2^20 ahead does not disturb a server that is about to decide', () => {
    const harness = new ElectionHarness(1).look()
    expect(harness.receive(2, { vote: vote(2) }).otherWork).toEqual(['finalize in 200'])
    expect(harness.receive(3, { vote: vote(3, far) }).work).toEqual([])
    expect(harness.timeout('finalize').otherWork).toEqual(['following 2'])
  })

  it('of 2^20 ahead is followed', () => {
    const harness = new ElectionHarness(1).look()
    expect(harness.receive(2, { vote: vote(2, far - 1) }).sent).toContain(`3: looking 2@${far - 1} 0 0`)
  })

  it('more than 2^20 behind is entered, since its voter does not follow', () => {
    const harness = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    harness.receive(2, { vote: vote(2, far - 1) })
    harness.receive(2, { vote: vote(2, 2 * far - 3) })
    expect(harness.election.round).toBe(2 * far - 3)
    harness.receive(3, { vote: vote(3, far - 1) })
    expect(harness.election.round).toBe(2 * far - 3)
    expect(harness.receive(3, { vote: vote(3, far - 2) }).sent).toContain(`2: looking 3@${far - 2} 0 0`)
  })

  it('is never sent beyond the last one that others accept', () => {
    const harness = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (const from of [2, 3, 4]) harness.receive(from, { vote: vote(from, 2 ** 52) })
    expect(harness.election.round).toBe(2 ** 52)
    expect(harness.look().sent).toContain(`2: looking 1@${2 ** 52} 0 0`)
  })

  it('far ahead of that of a voter that is a quorum alone does not keep a server from following it', () => {
    const members = [1, 2, 3].map((id) => `server.${id}=h${id}:1:2`)
    const active = parseConfiguration([...members, 'group.1=1:2:3', 'weight.2=9'].join('\n'))
    const farAhead = (): ElectionHarness => {
      const harness = new ElectionHarness(1).look({ active })
      harness.receive(2, { vote: vote(2, 2 ** 30) })
      return harness.look({ active })
    }
    const looking = farAhead()
    expect(looking.election.round).toBe(2 ** 30 + 1)
    looking.receive(2, { vote: vote(2, 1) })
    expect([looking.election.round, looking.election.vote.leader]).toEqual([1, 2])
    const leading = farAhead().receive(2, { state: 'leading', vote: vote(2, 1) })
    expect(leading.otherWork).toContain('following 2')
  })

  it('of a leader is not taken from a single vote far ahead', () => {
    const active = parseConfiguration('server.1=a:1:2\nserver.2=b:1:2')
    const harness = new ElectionHarness(1, { oracle: true }).look({ active })
    expect(harness.receive(2, { state: 'leading', vote: vote(2, 2 ** 52) }).otherWork).toEqual([
      'following 2',
    ])
    expect(harness.election.round).toBe(1)
  })
})

describe('a server whose leader refuses it', () => {
  const look = (): ElectionHarness =>
    new ElectionHarness(1).step({
      type: 'look',
      state: { zxid: 0, epoch: 0, active: ensemble([1, 2, 3]) },
      avoid: { leader: 3, forMs: 500 },
    })
  const established = (harness: ElectionHarness): string[] => {
    const following = harness.receive(2, { state: 'following', vote: vote(3, 8) }).otherWork
    return [...following, ...harness.receive(3, { state: 'leading', vote: vote(3, 8) }).otherWork]
  }

  it('does not join it again before the time is over, and then asks all for their votes', () => {
    const harness = look()
    expect(harness.otherWork).toContain('avoid in 500')
    expect(established(harness)).toEqual([])
    expect(harness.timeout('avoid').sent).toEqual(['2: looking 1@1 0 0', '3: looking 1@1 0 0'])
    expect(established(harness)).toEqual(['following 3'])
  })

  it('takes part in elections and joins other leaders meanwhile', () => {
    expect(look().receive(3, { vote: vote(3) }).otherWork).toEqual(['finalize in 200'])
    const harness = look()
    harness.receive(3, { state: 'following', vote: vote(2, 8) })
    expect(harness.receive(2, { state: 'leading', vote: vote(2, 8) }).otherWork).toEqual(['following 2'])
  })

  it('joins no other leader meanwhile that no quorum follows', () => {
    const harness = look().timeout('resend')
    const configuration = printConfiguration(ensemble([1, 2, 3]))
    const leading = { state: 'leading', vote: vote(2, 8), configuration } as const
    expect(harness.receive(2, leading).otherWork).toEqual([])
    expect(harness.timeout('avoid').receive(2, leading).otherWork).toEqual(['following 2'])
  })
})

describe('one of two servers with an oracle', () => {
  const active = parseConfiguration('server.1=a:1:2\nserver.2=b:1:2')
  const alone = (oracle: boolean): ElectionHarness => new ElectionHarness(1, { oracle }).look({ active })

  it('leads alone when the oracle allows it, after a timeout', () => {
    const harness = alone(true)
    expect(harness.timeout('resend').otherWork).toEqual(['resend in 400'])
    expect(harness.step({ type: 'oracle', canLeadAlone: true }).work).toEqual([])
    expect(harness.timeout('resend').otherWork).toContain('leading 1')
  })

  it('joins the other leading server unless the oracle allows it to lead alone', () => {
    const leading = { state: 'leading', vote: vote(2, 5) } as const
    expect(alone(true).receive(2, leading).otherWork).toEqual(['following 2'])
    expect(alone(true).step({ type: 'oracle', canLeadAlone: true }).receive(2, leading).otherWork).toEqual([])
  })

  it('does not use the oracle when none is configured or when there are three voters', () => {
    for (const harness of [alone(false), new ElectionHarness(1, { oracle: true }).look()])
      expect(harness.step({ type: 'oracle', canLeadAlone: true }).timeout('resend').otherWork).toEqual([
        'resend in 400',
      ])
  })
})

describe('the work of an election', () => {
  const stops = (harness: ElectionHarness): string[] =>
    harness.work.flatMap((work) => (work.do === 'stop' ? [work.timer] : []))

  it('stops the notifications while the server waits for a better vote, and the wait when it decides', () => {
    const harness = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (const id of [2, 3]) harness.receive(id, { vote: vote(3) })
    expect(stops(harness)).toEqual(['resend'])
    expect(harness.timeout('resend').work).toEqual([])
    for (const id of [4, 5]) harness.receive(id, { vote: vote(3) })
    expect(harness.otherWork).toEqual(['following 3'])
    expect(stops(harness)).toEqual(['finalize', 'resend'])
  })

  it('stops the time in which a leader is avoided when the server decides', () => {
    const harness = new ElectionHarness(1)
    harness.step({
      type: 'look',
      state: { zxid: 0, epoch: 0, active: ensemble([1, 2, 3]) },
      avoid: { leader: 3, forMs: 1000 },
    })
    for (const id of [2, 3]) harness.receive(id, { state: id === 2 ? 'leading' : 'following', vote: vote(2) })
    expect(harness.otherWork).toEqual(['following 2'])
    expect(stops(harness)).toEqual(['resend', 'avoid'])
  })

  it('answers each other worse vote of a server once', () => {
    const harness = new ElectionHarness(2).look({ zxid: 5 })
    for (const zxid of [1, 2])
      expect(harness.receive(3, { vote: vote(3, 1, zxid) }).sent).toEqual(['3: looking 2@1 5 0'])
    expect(harness.receive(3, { vote: vote(3, 1, 2) }).sent).toEqual([])
  })

  it('keeps its vote when an epoch is established while it looks', () => {
    const harness = new ElectionHarness(2).look({ zxid: 5, epoch: 1 })
    harness.step({ type: 'established', epoch: 9 })
    expect(harness.receive(3, { vote: vote(3, 1, 1, 1) }).sent).toEqual(['3: looking 2@1 5 1'])
  })

  it('names the designated leader after it is assigned a role', () => {
    const harness = new ElectionHarness(1).look({ zxid: 5, epoch: 1 })
    harness.receive(2, { vote: vote(2, 1, 5, 1) }).receive(3, { vote: vote(2, 1, 5, 1) })
    expect(harness.election.state).toBe('following')
    harness.step({ type: 'assigned', state: 'following', leader: 3 })
    expect(harness.receive(2, { vote: vote(2, 1, 0, 0) }).sent).toEqual(['2: following 3@1 5 1'])
    harness.step({ type: 'assigned', state: 'leading', leader: 1, zxid: 7 })
    expect(harness.receive(2, { vote: vote(2, 1, 0, 0) }).sent).toEqual(['2: leading 1@1 7 1'])
  })

  it('does not follow a follower where the oracle does not let the server lead', () => {
    const harness = new ElectionHarness(1, { oracle: true }).look({ active: ensemble([1, 2]) })
    expect(harness.receive(2, { state: 'following', vote: vote(2) }).otherWork).toEqual([])
  })

  it('ignores another configuration of the same version', () => {
    const harness = new ElectionHarness(1, { adoptsConfigurations: true })
    harness.look({ zxid: 9, active: ensemble([1, 2, 3], 'version=5') })
    const configuration = printConfiguration(ensemble([1, 2, 4], 'version=5'))
    for (const from of [2, 3]) harness.receive(from, { vote: vote(1), configuration })
    expect(harness.work.filter((work) => work.do === 'configure' || work.do === 'warn')).toEqual([])
  })

  it('says which servers have sent a newer configuration', () => {
    const harness = new ElectionHarness(1, { adoptsConfigurations: true })
    harness.look({ zxid: 9, active: ensemble([1, 2, 3, 4, 5], 'version=5') })
    const configuration = printConfiguration(ensemble([1, 2, 3], 'version=7'))
    harness.receive(2, { vote: vote(1), configuration })
    const warnings = harness.work.flatMap((work) => (work.do === 'warn' ? [work.context] : []))
    expect(warnings).toEqual([{ from: 2, version: 7, sentBy: [2] }])
  })

  it('enters a round 2^20 behind only when it is farther', () => {
    const harness = new ElectionHarness(1).look().receive(2, { vote: vote(2, 5) })
    expect(harness.election.round).toBe(5)
    harness.receive(3, { vote: vote(3, 5, 9) })
    expect(harness.election.round).toBe(5)
    expect(harness.election.vote).toMatchObject({ leader: 3, zxid: 9 })
  })

  it('is not held up by a vote of an earlier round while it waits for a better one', () => {
    const harness = new ElectionHarness(1).look().look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (const id of [2, 3]) harness.receive(id, { vote: vote(3, 2) })
    // Better, but void.
    expect(harness.receive(4, { vote: vote(4, 1, 99, 9) }).otherWork).toEqual([])
    expect(harness.receive(5, { state: 'following', vote: vote(3, 2) }).otherWork).toEqual([])
    expect(harness.timeout('finalize').otherWork).toEqual(['following 3'])
  })
})

describe('two votes for one leader', () => {
  const of = (state: PeerState, version: number, more: Partial<Vote> = {}): ReceivedVote => ({
    ...vote(2, 3, 7, 1),
    state,
    version,
    ...more,
  })

  it.each([
    ['of looking servers', of('looking', 0), of('looking', 0), true],
    ['of looking servers with different zxids', of('looking', 0), of('looking', 0, { zxid: 6 }), false],
    ['of looking servers of different rounds', of('looking', 0), of('looking', 0, { round: 2 }), false],
    [
      'of which the first is looking, with different zxids',
      of('looking', 0),
      of('leading', 2, { zxid: 6 }),
      false,
    ],
    [
      'of which the second is looking, with different zxids',
      of('leading', 2),
      of('looking', 0, { zxid: 6 }),
      false,
    ],
    ['of servers with a role and different zxids', of('leading', 2), of('following', 2, { zxid: 6 }), true],
    [
      'of servers with a role and different epochs',
      of('leading', 2),
      of('following', 2, { epoch: 2 }),
      false,
    ],
    [
      'of which one has no version, with different epochs',
      of('leading', 0),
      of('following', 2, { epoch: 2 }),
      true,
    ],
    [
      'of which neither has a version, with different epochs',
      of('leading', 0),
      of('following', 0, { epoch: 2 }),
      false,
    ],
  ])('%s count as the same or not', (_, a, b, same) => {
    expect([isSameVote(a, b), isSameVote(b, a)]).toEqual([same, same])
  })
})
