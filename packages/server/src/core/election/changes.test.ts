import { describe, expect, it } from 'vitest'
import { ElectionHarness, ensemble, vote } from './testing/election-harness.ts'

describe('a change of the ensemble that I have logged, and that nobody has committed yet', () => {
  it('is told of to its voters too, while it is newer', () => {
    const proposed = ensemble([3, 4], 'version=5')
    expect(new ElectionHarness(1).look({ proposed }).sent.map((line) => line[0])).toEqual(['2', '3', '4'])
    const old = { active: ensemble([1, 2], 'version=5'), proposed }
    expect(new ElectionHarness(1).look(old).sent.map((line) => line[0])).toEqual(['2'])
  })

  it('needs most voters of both ensembles to choose', () => {
    const desk = new ElectionHarness(1).look({ proposed: ensemble([3, 4, 5], 'version=9') })
    desk.receive(3, { vote: vote(3) })
    expect(desk.otherWork).toEqual([])
    expect(desk.receive(2, { vote: vote(3) }).otherWork).toEqual([])
    expect(desk.receive(5, { vote: vote(3) }).otherWork).toEqual(['settle in 200'])
  })

  it('is no reason to keep away from others that lead without it', () => {
    // 4 led and wanted 5 to have a voice; nobody else knows of that, and 5 has none.
    const active = ensemble([1, 3, 4], 'server.5=h5:1:2:observer')
    const footing = { zxid: 99, epoch: 2, active, proposed: ensemble([1, 3, 4, 5], 'version=200000131') }
    const desk = new ElectionHarness(4, { adoptsConfigurations: true }).look(footing)
    expect(desk.receive(1, { state: 'following', vote: vote(3, 8) }).otherWork).toEqual([])
    expect(desk.receive(3, { state: 'leading', vote: vote(3, 8) }).otherWork).toEqual(['following 3'])
  })

  it('is no reason to keep away from the one that my voice has elected', () => {
    // 3 led and wanted to be an observer; nobody else knows. 1 wins with its voice, and 2 does not hear of it.
    const proposed = ensemble([1, 2], 'server.3=h3:1:2:observer\nversion=100000033')
    const desk = new ElectionHarness(3, { adoptsConfigurations: true }).look({ zxid: 99, epoch: 1, proposed })
    expect(desk.receive(1, { vote: vote(1, 1, 0x50, 2) }).sent).toContain('1: looking 1@1 50 2')
    expect(desk.receive(1, { state: 'leading', vote: vote(1, 1, 0x50, 2) }).otherWork).toEqual([
      'following 1',
    ])
  })

  it('lets me lead only with most voters of both', () => {
    const desk = new ElectionHarness(3).look({ proposed: ensemble([3, 4, 5], 'version=9') })
    for (const from of [1, 2])
      expect(desk.receive(from, { state: 'following', vote: vote(3) }).otherWork).toEqual([])
    expect(desk.receive(4, { state: 'following', vote: vote(3) }).otherWork).toEqual(['leading 3'])
  })
})
