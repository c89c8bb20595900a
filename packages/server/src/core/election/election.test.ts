import { describe, expect, it } from 'vitest'
import { parseConfiguration, printConfiguration } from '../quorum/index.ts'
import { NO_VALUE } from './index.ts'
import { ElectionHarness, ensemble, vote } from './testing/election-harness.ts'

const min = NO_VALUE.toString(16)

describe('who looks for a leader', () => {
  it('begins the next round with a vote for itself and tells every other voter', () => {
    const desk = new ElectionHarness(2).look({ zxid: 0x100000005, epoch: 1 })
    expect(desk.sent).toEqual(['1: looking 2@1 100000005 1', '3: looking 2@1 100000005 1'])
    expect(desk.otherWork).toEqual(['resend in 200'])
    expect(desk.look().sent).toEqual(['1: looking 2@2 0 0', '3: looking 2@2 0 0'])
  })

  it('names nobody when it is an observer', () => {
    const desk = new ElectionHarness(4).look({
      zxid: 7,
      epoch: 1,
      active: ensemble([1, 2], 'server.4=h4:1:2:observer'),
    })
    expect(desk.sent[0]).toBe(`1: looking ${NO_VALUE}@1 ${min} ${NO_VALUE}`)
  })

  it('shows its data but names nobody when the configuration does not name it', () => {
    const desk = new ElectionHarness(9).look({ zxid: 7, epoch: 1 })
    expect(desk.sent[0]).toBe(`1: looking ${NO_VALUE}@1 7 1`)
  })

  it('decides alone at once when it is the only voter', () => {
    expect(new ElectionHarness(1).look({ active: ensemble([1]) }).otherWork).toContain('leading 1')
  })

  it('does not decide alone on data that it does not trust, nor with an oracle', () => {
    const alone = new ElectionHarness(1).look({ active: ensemble([1]), zxid: -1 })
    expect([alone.otherWork, alone.timeout('resend').otherWork]).toEqual([
      ['resend in 200'],
      ['resend in 400'],
    ])
    const two = new ElectionHarness(1, { oracle: true }).look({ active: ensemble([1, 2]), zxid: -1 })
    two.step({ type: 'oracle', goOn: true })
    expect(two.timeout('resend').otherWork).toEqual(['resend in 400'])
  })

  it('does nothing before it is told to look', () => {
    expect(new ElectionHarness(1).receive(2, { vote: vote(2) }).work).toEqual([])
  })
})

describe('a vote that is heard', () => {
  it.each([
    ['a higher epoch', vote(1, 1, 0, 3)],
    ['a higher zxid in the same epoch', vote(1, 1, 0x200000009, 2)],
    ['a higher id with the same data', vote(3, 1, 0x200000005, 2)],
  ])('replaces mine when it has %s, and everybody hears of it', (_, better) => {
    const desk = new ElectionHarness(2).look({ zxid: 0x200000005, epoch: 2 }).receive(1, { vote: better })
    const told = `looking ${better.leader}@1 ${better.zxid.toString(16)} ${better.epoch}`
    expect(desk.sent).toEqual([`1: ${told}`, `3: ${told}`])
  })

  it.each([
    ['a lower epoch with a higher zxid', vote(3, 1, 0x300000000, 1)],
    ['a lower zxid with a higher id', vote(3, 1, 0x200000004, 2)],
    ['a lower id', vote(1, 1, 0x200000005, 2)],
  ])('does not replace mine when it has %s, and is told of mine once', (_, worse) => {
    const desk = new ElectionHarness(2).look({ zxid: 0x200000005, epoch: 2 }).receive(3, { vote: worse })
    expect(desk.sent).toEqual(['3: looking 2@1 200000005 2'])
    expect(desk.receive(3, { vote: worse }).sent).toEqual([])
  })

  it('that is mine, or better than mine, is not answered', () => {
    const desk = new ElectionHarness(2).look()
    expect(desk.receive(3, { vote: vote(2) }).sent).toEqual([])
    expect(desk.receive(1, { vote: vote(3) }).sent).toEqual(['1: looking 3@1 0 0', '3: looking 3@1 0 0'])
  })

  it('is void when its candidate has no weight', () => {
    const active = ensemble([1, 2, 3, 4], 'group.1=1:2:3\ngroup.2=4\nweight.4=0')
    const desk = new ElectionHarness(1).look({ active }).receive(4, { vote: vote(4, 1, 99, 9) })
    expect(desk.sent).toEqual([])
  })

  it('takes me into a later round, where I start again from what I have', () => {
    const desk = new ElectionHarness(2)
      .look({ zxid: 5, active: ensemble([1, 2, 3, 4, 5]) })
      .receive(1, { vote: vote(3, 1, 9) })
    desk.receive(1, { vote: vote(1, 4, 3) })
    expect(desk.sent).toEqual([1, 3, 4, 5].map((id) => `${id}: looking 2@4 5 0`))
    expect(desk.election.round).toBe(4)
  })

  it('of a later round is adopted when it is better than what I have', () => {
    const desk = new ElectionHarness(2).look({ zxid: 5 }).receive(1, { vote: vote(3, 4, 9) })
    expect(desk.sent).toEqual(['1: looking 3@4 9 0', '3: looking 3@4 9 0'])
  })

  it('of a later round makes those of earlier ones void', () => {
    const desk = new ElectionHarness(2).look().receive(1, { vote: vote(2) })
    expect(desk.otherWork).toContain('settle in 200')
    expect(desk.receive(3, { vote: vote(3, 2, 1) }).otherWork).toContain('settle in 200')
    const other = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    other.receive(2, { vote: vote(5) }).receive(3, { vote: vote(5, 2) })
    expect(other.otherWork).toEqual([])
    expect(other.receive(2, { vote: vote(5, 2) }).otherWork).toContain('settle in 200')
  })

  it('of an earlier round is answered with mine and does not count', () => {
    const desk = new ElectionHarness(1)
      .look()
      .look()
      .receive(3, { vote: vote(3, 1, 99) })
    expect(desk.sent).toEqual(['3: looking 1@2 0 0'])
    expect(desk.election.vote.leader).toBe(1)
  })

  it('is ignored when it is for somebody who is no voter', () => {
    expect(new ElectionHarness(1).look().receive(2, { vote: vote(8, 1, 99, 9) }).work).toEqual([])
  })

  it('is ignored when its data is not to be trusted', () => {
    expect(new ElectionHarness(1).look().receive(2, { vote: vote(2, 1, -1) }).work).toEqual([])
  })

  it('does not count for a server that does not trust its own data', () => {
    const desk = new ElectionHarness(1).look({ zxid: -1 })
    expect(desk.receive(2, { vote: vote(2) }).receive(3, { vote: vote(2) }).work).toEqual([])
  })

  it('from a server that observes is ignored', () => {
    expect(new ElectionHarness(1).look().receive(2, { state: 'observing', vote: vote(3) }).work).toEqual([])
  })

  it('of mine that comes back is ignored', () => {
    expect(new ElectionHarness(1).look().receive(1, { vote: vote(3, 1, 9) }).work).toEqual([])
  })
})

describe('a quorum with my vote', () => {
  const supported = (): ElectionHarness => new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })

  it('is waited on for a while and then decides', () => {
    const desk = supported().receive(4, { vote: vote(4) })
    expect(desk.otherWork).toEqual([])
    expect(desk.receive(2, { vote: vote(4) }).otherWork).toEqual(['settle in 200'])
    expect(desk.timeout('settle').otherWork).toEqual(['following 4'])
    expect(desk.election.state).toBe('following')
  })

  it('decides at once when every voter agrees', () => {
    const desk = supported().receive(5, { vote: vote(5) })
    for (const id of [2, 3]) desk.receive(id, { vote: vote(5) })
    expect(desk.otherWork).not.toContain('following 5')
    expect(desk.receive(4, { vote: vote(5) }).otherWork).toContain('following 5')
  })

  it('decides at once when every voter agrees that can be heard', () => {
    const desk = supported()
      .reach(5, false)
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
    expect(desk.otherWork).toEqual(['settle in 200'])
    expect(desk.reach(3, false).otherWork).toContain('following 4')
    const other = supported().reach(5, false).reach(3, false).reach(5, true)
    expect(other.receive(4, { vote: vote(4) }).receive(2, { vote: vote(4) }).otherWork).toEqual([
      'settle in 200',
    ])
    expect(other.reach(5, false).otherWork).toContain('following 4')
  })

  it('waits for a voter that can be heard and agrees with something else', () => {
    const desk = supported()
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
      .reach(5, false)
    expect(desk.receive(3, { vote: vote(3) }).otherWork).toEqual([])
    expect(desk.timeout('settle').otherWork).toEqual(['following 4'])
  })

  it('makes me lead when it is mine', () => {
    expect(
      new ElectionHarness(3)
        .look()
        .receive(1, { vote: vote(3) })
        .timeout('settle').otherWork,
    ).toEqual(['leading 3'])
  })

  it('makes an observer observe', () => {
    const active = ensemble([1, 2], 'server.4=h4:1:2:observer')
    const desk = new ElectionHarness(4)
      .look({ active })
      .receive(1, { vote: vote(2) })
      .receive(2, { vote: vote(2) })
    expect(desk.otherWork).toContain('observing 2')
  })

  it('makes a participant that is not in the configuration follow, without its voice', () => {
    const desk = new ElectionHarness(9).look().receive(2, { vote: vote(2) })
    expect(desk.otherWork).toEqual([])
    expect(desk.receive(1, { vote: vote(2) }).timeout('settle').otherWork).toEqual(['following 2'])
  })

  it('is upset by a better vote', () => {
    const desk = supported()
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
    desk.receive(5, { vote: vote(5) })
    expect(desk.otherWork).toEqual(['resend in 200'])
    expect(desk.timeout('settle').work).toEqual([])
    expect(desk.receive(2, { vote: vote(5) }).timeout('settle').otherWork).toEqual(['following 5'])
  })

  it('is not upset by others, nor is the wait prolonged', () => {
    const desk = supported()
      .receive(4, { vote: vote(4) })
      .receive(2, { vote: vote(4) })
    expect(desk.receive(3, { vote: vote(3, 7) }).work).toEqual([])
    expect(desk.receive(5, { vote: vote(5, 0) }).otherWork).toEqual([])
    expect(desk.timeout('settle').otherWork).toEqual(['following 4'])
  })

  it('must agree on round, zxid and epoch', () => {
    const desk = supported().receive(4, { vote: vote(4, 1, 7, 1) })
    expect(desk.receive(2, { vote: vote(4, 1, 7, 0) }).otherWork).toEqual([])
    expect(desk.receive(3, { vote: vote(4, 1, 6, 1) }).otherWork).toEqual([])
    expect(desk.receive(5, { vote: vote(4, 1, 7, 1) }).otherWork).toEqual(['settle in 200'])
  })

  it('is needed of most groups where there are groups', () => {
    const desk = new ElectionHarness(1).look({
      active: ensemble([1, 2, 3, 4, 5, 6], 'group.1=1:2:3\ngroup.2=4:5:6'),
    })
    for (const id of [2, 3, 6]) desk.receive(id, { vote: vote(6) })
    expect(desk.otherWork).toEqual([])
    expect(desk.receive(5, { vote: vote(6) }).otherWork).toEqual(['settle in 200'])
  })
})

describe('a silence', () => {
  it('makes me repeat my vote and connect, with twice the patience each time', () => {
    const desk = new ElectionHarness(1).look()
    const waits: string[] = []
    for (let i = 0; i < 10; i++) waits.push(...desk.timeout('resend').otherWork)
    expect(waits.slice(0, 3)).toEqual(['resend in 400', 'resend in 800', 'resend in 1600'])
    expect(waits.at(-1)).toBe('resend in 60000')
    expect(desk.sent).toEqual(['2: looking 1@1 0 0', '3: looking 1@1 0 0'])
    expect(desk.work).toContainEqual({ do: 'connect', to: [2, 3] })
  })

  it('is short again when my vote has changed', () => {
    const desk = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (let i = 0; i < 5; i++) desk.timeout('resend')
    expect(desk.receive(2, { vote: vote(2) }).otherWork).toEqual(['resend in 200'])
    expect(desk.timeout('resend').otherWork).toEqual(['resend in 400'])
  })

  it('is short again in the next election', () => {
    expect(new ElectionHarness(1).look().timeout('resend').look().otherWork).toEqual(['resend in 200'])
  })
})

describe('who has decided', () => {
  const follower = (): ElectionHarness =>
    new ElectionHarness(1)
      .look()
      .look()
      .receive(3, { vote: vote(3, 2) })
      .timeout('settle')

  it('tells who looks whom it follows, with the round of that vote', () => {
    expect(follower().receive(2, { vote: vote(2, 9) }).sent).toEqual(['2: following 3@2 0 0'])
  })

  it('tells the epoch in which its leader leads', () => {
    const desk = follower().step({ type: 'installed', epoch: 4 })
    expect(desk.receive(2, { vote: vote(2) }).sent).toEqual(['2: following 3@2 0 4'])
  })

  it('has nothing to say to others that have', () => {
    expect(follower().receive(2, { state: 'following', vote: vote(3, 2) }).work).toEqual([])
    expect(follower().receive(8, { state: 'observing', vote: vote(3, 2) }).work).toEqual([])
  })

  it('is not moved by any timer or vote', () => {
    const desk = follower()
    expect([desk.timeout('resend').work, desk.timeout('settle').work]).toEqual([[], []])
    desk.receive(2, { vote: vote(2, 99, 99, 99) })
    expect([desk.election.state, desk.election.vote.leader]).toEqual(['following', 3])
  })

  it('goes by new configurations', () => {
    const desk = follower().step({
      type: 'configured',
      configurations: { active: ensemble([1, 3], 'version=7') },
    })
    desk.receive(2, { vote: vote(2, 9) })
    expect(desk.work).toMatchObject([
      { do: 'send', configuration: printConfiguration(ensemble([1, 3], 'version=7')) },
    ])
  })
})

describe('who has no voice', () => {
  it('is told how things stand and does not count', () => {
    const desk = new ElectionHarness(1)
      .look()
      .look()
      .receive(9, { vote: vote(3, 7, 99, 9) })
    expect(desk.sent).toEqual(['9: looking 1@2 0 0'])
    expect(desk.election.round).toBe(2)
  })

  it('is answered once as long as neither has anything new to say', () => {
    const desk = new ElectionHarness(1).look()
    const ask = (): string[] => desk.receive(9, { vote: vote(NO_VALUE) }).sent
    expect([ask().length, ask().length]).toEqual([1, 0])
    desk.timeout('resend')
    expect(ask().length).toBe(1)
  })

  it.each([
    ['do not know each other', [1, 3], [2, 3]],
    ['know each other from one side only', [1, 2], [2, 3]],
  ])('does not chat without end when two %s', (_, ofOne, ofTwo) => {
    const desks = [
      new ElectionHarness(1).look({ active: ensemble(ofOne) }).look({ active: ensemble(ofOne) }),
      new ElectionHarness(2).look({ active: ensemble(ofTwo) }),
    ]
    let from = 0
    let said = { state: desks[0]!.election.state, vote: desks[0]!.election.vote }
    let exchanges = 0
    for (; exchanges < 100; exchanges++) {
      const { work } = desks[1 - from]!.receive(from + 1, said)
      const answer = work.find((one) => one.do === 'send' && one.to === from + 1)
      if (answer?.do !== 'send') break
      said = answer
      from = 1 - from
    }
    expect(exchanges).toBeLessThan(5)
  })

  it('is not answered when it has a role', () => {
    expect(new ElectionHarness(1).look().receive(9, { state: 'observing', vote: vote(3) }).work).toEqual([])
  })
})

describe('an ensemble that others have formed', () => {
  it('is joined when a quorum follows and the leader leads, in whatever round', () => {
    const desk = new ElectionHarness(3).look({ zxid: 99, epoch: 2 })
    expect(desk.receive(1, { state: 'following', vote: vote(2, 8, 6, 1) }).otherWork).toEqual([])
    expect(desk.receive(2, { state: 'leading', vote: vote(2, 8, 6, 1) }).otherWork).toEqual(['following 2'])
    expect(desk.election.round).toBe(8)
  })

  it('is not joined on the word of followers alone: their leader may be dead', () => {
    const desk = new ElectionHarness(4).look({ active: ensemble([1, 2, 3, 4, 5]) })
    for (const id of [1, 2, 3]) desk.receive(id, { state: 'following', vote: vote(5, 8) })
    expect(desk.election.state).toBe('looking')
    expect(desk.receive(5, { state: 'leading', vote: vote(5, 8) }).otherWork).toEqual(['following 5'])
  })

  it('is not joined on the word of the leader alone', () => {
    expect(
      new ElectionHarness(3).look().receive(2, { state: 'leading', vote: vote(2, 8) }).otherWork,
    ).toEqual([])
  })

  it('may disagree on zxid and round, but not on the epoch', () => {
    const five = { active: ensemble([1, 2, 3, 4, 5]) }
    const desk = new ElectionHarness(3).look(five)
    desk
      .receive(1, { state: 'following', vote: vote(2, 8, 6, 1) })
      .receive(2, { state: 'leading', vote: vote(2, 7, 5, 2) })
    expect(desk.receive(4, { state: 'following', vote: vote(2, 3, 9, 1) }).otherWork).toEqual([])
    expect(desk.receive(5, { state: 'following', vote: vote(2, 3, 9, 2) }).otherWork).toEqual([])
    expect(desk.receive(1, { state: 'following', vote: vote(2, 8, 6, 2) }).otherWork).toEqual(['following 2'])
  })

  it('may disagree on the epoch where a server without version is among it', () => {
    const desk = new ElectionHarness(3)
      .look()
      .receive(1, { state: 'following', version: 0, vote: vote(2, 8, 6, 1) })
    expect(desk.receive(2, { state: 'leading', vote: vote(2, 8, 6, 2) }).otherWork).toEqual(['following 2'])
  })

  it('of my own round is joined whatever epoch its members tell', () => {
    const desk = new ElectionHarness(3).look().receive(1, { state: 'following', vote: vote(2, 1, 6, 1) })
    expect(desk.receive(2, { state: 'leading', vote: vote(2, 1, 6, 2) }).otherWork).toEqual(['following 2'])
  })

  it('of my own round is not joined with the voices of an earlier round', () => {
    const desk = new ElectionHarness(1).look({ active: ensemble([1, 2, 3, 4, 5]) })
    desk.receive(2, { state: 'following', vote: vote(5, 1, 6, 1) })
    // A later round begins.
    desk.receive(3, { vote: vote(3, 2) })
    desk.receive(4, { state: 'following', vote: vote(5, 2, 6, 2) })
    expect(desk.receive(5, { state: 'leading', vote: vote(5, 2, 6, 2) }).otherWork).toEqual([])
    expect(desk.receive(2, { state: 'following', vote: vote(5, 2, 6, 2) }).otherWork).toEqual(['following 5'])
  })

  it('is led by me when it follows me in the round that I am in, and not otherwise', () => {
    const five = { active: ensemble([1, 2, 3, 4, 5]) }
    const desk = new ElectionHarness(5).look(five)
    for (const id of [1, 2, 3]) desk.receive(id, { state: 'following', vote: vote(5, 1) })
    expect(desk.election.state).toBe('leading')
    const restarted = new ElectionHarness(5).look(five)
    for (const id of [1, 2, 3]) restarted.receive(id, { state: 'following', vote: vote(5, 6) })
    expect(restarted.election.state).toBe('looking')
  })

  it('is joined by who does not trust its own data', () => {
    const desk = new ElectionHarness(3)
      .look({ zxid: -1 })
      .receive(1, { state: 'following', vote: vote(2, 8) })
    expect(desk.receive(2, { state: 'leading', vote: vote(2, 8) }).otherWork).toEqual(['following 2'])
  })
})

describe('a configuration that another server tells of', () => {
  const newer = ensemble([1, 2, 3, 4], 'version=100000000')
  const tell = { vote: vote(2), configuration: printConfiguration(newer) }

  it('is taken when it is newer, and the election starts again under it', () => {
    const desk = new ElectionHarness(1, { adoptsConfigurations: true }).look().receive(2, tell)
    expect(desk.work).toMatchObject([
      { do: 'stop', timer: 'resend' },
      { do: 'configure', from: 2, restart: true, configuration: { version: 0x100000000 } },
    ])
    expect(desk.timeout('resend').work).toEqual([])
    expect(desk.look({ active: newer }).sent.length).toBe(3)
  })

  it('is taken without a new start when only its version is newer', () => {
    const same = ensemble([1, 2, 3], 'version=5')
    const desk = new ElectionHarness(3, { adoptsConfigurations: true }).look()
    desk.receive(2, { vote: vote(3), configuration: printConfiguration(same) })
    expect(desk.otherWork).toEqual(['configure', 'settle in 200'])
    expect(desk.receive(1, { vote: vote(1, 0) }).work).toMatchObject([
      { configuration: printConfiguration(same) },
    ])
  })

  it('is left alone when it is older, or when I have a role', () => {
    const active = ensemble([1, 2, 3], 'version=200000000')
    const desk = new ElectionHarness(1, { adoptsConfigurations: true }).look({ active }).receive(2, tell)
    expect(desk.otherWork).toEqual(['settle in 200'])
    expect(desk.timeout('settle').receive(3, { ...tell, vote: vote(3) }).otherWork).toEqual([])
  })

  it('is left alone where configurations do not change at run time, and I say so once', () => {
    const desk = new ElectionHarness(3).look().receive(2, { ...tell, vote: vote(3) })
    expect(desk.otherWork).toEqual(['warn', 'settle in 200'])
    expect(desk.receive(2, { ...tell, vote: vote(3) }).otherWork).toEqual([])
  })

  it('that cannot be read does not make its vote void', () => {
    const desk = new ElectionHarness(3, { adoptsConfigurations: true }).look()
    desk.receive(2, { vote: vote(3), configuration: 'server.1=nonsense' })
    expect(desk.otherWork).toEqual(['warn', 'settle in 200'])
    expect(desk.work[0]).toMatchObject({ do: 'warn', facts: { from: 2 } })
  })
})

describe('one of two servers with an oracle', () => {
  const active = parseConfiguration('server.1=a:1:2\nserver.2=b:1:2')
  const alone = (oracle: boolean): ElectionHarness => new ElectionHarness(1, { oracle }).look({ active })

  it('goes on alone when the oracle says so, after a silence', () => {
    const desk = alone(true)
    expect(desk.timeout('resend').otherWork).toEqual(['resend in 400'])
    expect(desk.step({ type: 'oracle', goOn: true }).work).toEqual([])
    expect(desk.timeout('resend').otherWork).toContain('leading 1')
  })

  it('joins the other one that leads, unless the oracle chose me', () => {
    const leading = { state: 'leading', vote: vote(2, 5) } as const
    expect(alone(true).receive(2, leading).otherWork).toEqual(['following 2'])
    expect(alone(true).step({ type: 'oracle', goOn: true }).receive(2, leading).otherWork).toEqual([])
  })

  it('does not ask it where there is none, or where there are three', () => {
    for (const desk of [alone(false), new ElectionHarness(1, { oracle: true }).look()])
      expect(desk.step({ type: 'oracle', goOn: true }).timeout('resend').otherWork).toEqual(['resend in 400'])
  })
})
