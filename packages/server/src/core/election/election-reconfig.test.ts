import { describe, expect, it } from 'vitest'
import { printConfiguration } from '../quorum/index.ts'
import { ElectionHarness, ensemble, vote } from './testing/election-harness.ts'

describe('an election with a proposed configuration that is not committed', () => {
  it('sends votes to the voters of the proposed configuration too while it is newer', () => {
    const proposed = ensemble([3, 4], 'version=5')
    expect(new ElectionHarness(1).look({ proposed }).sent.map((line) => line[0])).toEqual(['2', '3', '4'])
    const old = { active: ensemble([1, 2], 'version=5'), proposed }
    expect(new ElectionHarness(1).look(old).sent.map((line) => line[0])).toEqual(['2'])
  })

  it('has the server that the proposed configuration adds as a candidate in every second round', () => {
    const [active, proposed] = [ensemble([1, 2, 3]), ensemble([1, 2, 3, 4], 'version=5')]
    const harness = new ElectionHarness(4)
    const candidates = [1, 2, 3, 4].map((round) =>
      harness.look({ zxid: 0x60, epoch: 2, active, proposed }).sent.includes(`1: looking 4@${round} 60 2`),
    )
    expect(candidates).toEqual([false, true, false, true])
  })

  it('has no server as a candidate that no configuration contains', () => {
    const [active, proposed] = [ensemble([1, 2, 3]), ensemble([1, 2, 3, 4], 'version=5')]
    const harness = new ElectionHarness(5).look({ active, proposed }).look({ active, proposed })
    expect(harness.sent.some((line) => line.includes('5@'))).toBe(false)
  })

  it('needs a quorum of both configurations to decide', () => {
    const harness = new ElectionHarness(1).look({ proposed: ensemble([3, 4, 5], 'version=9') })
    harness.receive(3, { vote: vote(3) })
    expect(harness.otherWork).toEqual([])
    expect(harness.receive(2, { vote: vote(3) }).otherWork).toEqual([])
    expect(harness.receive(5, { vote: vote(3) }).otherWork).toEqual(['finalize in 200'])
  })

  it('has no candidate in every fourth round once it was elected in vain by those that do not know it', () => {
    const state = { zxid: 0x50, epoch: 2, proposed: ensemble([3, 4, 5], 'version=9') }
    const harness = new ElectionHarness(3).look(state)
    const candidates: (string | undefined)[] = []
    const warnings: number[] = []
    for (let round = 1; round <= 9; round++) {
      // 1 begins each round, since it could not follow this server in the one before.
      harness.receive(1, { vote: vote(1, round, 0x50, 2) })
      candidates.push(harness.sent.at(-1))
      for (const from of [1, 2]) {
        harness.receive(from, { vote: vote(3, round, 0x50, 2) })
        if (harness.otherWork.includes('warn')) warnings.push(round)
      }
    }
    const own = (round: number): string => `5: looking 3@${round} 50 2`
    const other = (round: number): string => `5: looking 1@${round} 50 2`
    expect(candidates.slice(1)).toEqual([own(2), own(3), own(4), other(5), own(6), own(7), own(8), other(9)])
    expect(warnings).toEqual([3])
  })

  it('stands back after three rounds in vain, and not after two', () => {
    for (const [vainRounds, candidate] of [
      [2, 3],
      [3, 1],
    ] as const) {
      const harness = new ElectionHarness(3).look({
        zxid: 0x50,
        epoch: 2,
        proposed: ensemble([3, 4, 5], 'version=9'),
      })
      for (let round = 5 - vainRounds; round < 5; round++) {
        harness.receive(1, { vote: vote(1, round, 0x50, 2) })
        for (const from of [1, 2]) harness.receive(from, { vote: vote(3, round, 0x50, 2) })
      }
      harness.receive(1, { vote: vote(1, 5, 0x50, 2) })
      expect(harness.sent.at(-1)).toBe(`5: looking ${candidate}@5 50 2`)
    }
  })

  it('does not stand back where another server was elected in vain', () => {
    const harness = new ElectionHarness(1).look({
      zxid: 0x50,
      epoch: 2,
      proposed: ensemble([3, 4, 5], 'version=9'),
    })
    for (let round = 1; round < 5; round++)
      for (const from of [3, 2]) {
        harness.receive(from, { vote: vote(3, round, 0x60, 2) })
        expect(harness.otherWork).not.toContain('warn')
      }
    harness.receive(2, { vote: vote(2, 5, 0x40, 2) })
    expect(harness.sent.at(-1)).toBe('5: looking 1@5 50 2')
  })

  it('joins a leader that a quorum of the active configuration follows', () => {
    // 4 led and proposed 5 as a voter; no other server has that proposal.
    const active = ensemble([1, 3, 4], 'server.5=h5:1:2:observer')
    const state = { zxid: 99, epoch: 2, active, proposed: ensemble([1, 3, 4, 5], 'version=200000131') }
    const harness = new ElectionHarness(4, { adoptsConfigurations: true }).look(state)
    expect(harness.receive(1, { state: 'following', vote: vote(3, 8) }).otherWork).toEqual([])
    expect(harness.receive(3, { state: 'leading', vote: vote(3, 8) }).otherWork).toEqual(['following 3'])
  })

  it('joins a leader of the current round that won with the vote of this server', () => {
    // 3 led and proposed itself as an observer; no other server has that proposal. 1 wins with the vote of 3; 2 is silent.
    const proposed = ensemble([1, 2], 'server.3=h3:1:2:observer\nversion=100000033')
    const harness = new ElectionHarness(3, { adoptsConfigurations: true }).look({
      zxid: 99,
      epoch: 1,
      proposed,
    })
    expect(harness.receive(1, { vote: vote(1, 1, 0x50, 2) }).sent).toContain('1: looking 1@1 50 2')
    expect(harness.receive(1, { state: 'leading', vote: vote(1, 1, 0x50, 2) }).otherWork).toEqual([
      'following 1',
    ])
  })

  it('leads only with a quorum of both configurations', () => {
    const harness = new ElectionHarness(3).look({ proposed: ensemble([3, 4, 5], 'version=9') })
    for (const from of [1, 2])
      expect(harness.receive(from, { state: 'following', vote: vote(3) }).otherWork).toEqual([])
    expect(harness.receive(4, { state: 'following', vote: vote(3) }).otherWork).toEqual(['leading 3'])
  })

  it('joins a leader that has the proposed configuration in force, instead of waiting for a candidate that it removes', () => {
    // 5 has the latest history and does not know that it was removed; 4 knows, was elected with an earlier vote of 1, and needs 1.
    const active = ensemble([1, 4, 5], 'version=4c')
    const proposed = ensemble([1, 4], 'version=54')
    const look = (): ElectionHarness =>
      new ElectionHarness(1, { adoptsConfigurations: true }).look({ zxid: 0x54, epoch: 3, active, proposed })
    const harness = look().receive(5, { vote: vote(5, 1, 0x56, 3) })
    expect(harness.sent).toContain('5: looking 5@1 56 3')
    const leading = { state: 'leading', vote: vote(4, 1, 0x56, 3) } as const
    expect(
      harness.receive(4, { ...leading, configuration: printConfiguration(proposed) }).otherWork,
    ).toContain('following 4')
    // A leader of another configuration, or that lacks what this server has, has to have a follower, or to wait.
    for (const notification of [
      { ...leading, configuration: printConfiguration(active) },
      { ...leading, configuration: printConfiguration(ensemble([1, 4], 'version=55')) },
      { state: 'leading', vote: vote(4, 1, 0x53, 3), configuration: printConfiguration(proposed) } as const,
    ]) {
      const other = look().receive(5, { vote: vote(5, 1, 0x56, 3) })
      expect(other.receive(4, notification).otherWork).not.toContain('following 4')
    }
  })
})
