import { SeededRandom, type Random } from '@zabra/runtime'
import { describe, expect, it, vi } from 'vitest'
import type { ServerAddress } from '../platform.ts'
import { isSameServerSet } from './connect-string.ts'
import { HostProvider, type ConnectedServer } from './host-provider.ts'
import { randomFraction } from '../random-fraction.ts'

const server = (letter: string): ServerAddress => ({ scheme: 'tcp', host: letter, port: 2181 })
const list = (letters: string): ServerAddress[] => letters.split('').map(server)
const at = (letter: string): ConnectedServer => ({ server: server(letter) })

/** Returns the listed numbers, then one half. */
function draws(...numbers: number[]): Random {
  return {
    below: (limit) => Math.floor((numbers.shift() ?? 0.5) * limit),
    bytes: (length) => new Uint8Array(length),
  }
}

function order(hosts: HostProvider, count: number): string {
  return Array.from({ length: count }, () => hosts.next().server.host).join('')
}

describe('the order of attempts', () => {
  it('cycles through all servers and counts rounds', () => {
    const hosts = new HostProvider(list('ABC'), draws(), false)
    const seen = Array.from({ length: 7 }, () => hosts.next())
    expect(seen.map(({ server: { host } }) => host).join('')).toBe('ABCABCA')
    expect(seen.map(({ round, position }) => `${round}.${position}`)).toEqual([
      '0.0',
      '0.1',
      '0.2',
      '1.0',
      '1.1',
      '1.2',
      '2.0',
    ])
  })

  it('begins with the server after the lost one, and restarts the rounds', () => {
    const hosts = new HostProvider(list('ABC'), draws(), false)
    hosts.next()
    const { server: second } = hosts.next()
    hosts.onConnected({ server: second })
    expect(hosts.next()).toMatchObject({ server: server('C'), round: 0, position: 2 })
    hosts.onConnected({ server: second })
    hosts.resetAttempts()
    expect(hosts.next()).toMatchObject({ server: server('C'), round: 0, position: 0 })
  })

  it('is shuffled with the given random source', () => {
    const orders = new Set(
      Array.from({ length: 200 }, (_, seed) =>
        order(new HostProvider(list('ABC'), new SeededRandom(seed)), 3),
      ),
    )
    expect([...orders].toSorted()).toEqual(['ABC', 'ACB', 'BAC', 'BCA', 'CAB', 'CBA'])
  })
})

describe('a server list update', () => {
  const survivors: readonly [string, string, string, number][] = [
    ['ABC', 'ABCDE', 'A', 2 / 5],
    ['ABC', 'ABCD', 'A', 1 / 4],
    ['A', 'AB', 'A', 1 / 2],
    ['ABCDEFGHI', 'ABCDEFGHIJ', 'A', 1 / 10],
    ['ABCDEF', 'BCDEFGHI', 'B', 1 / 4],
    ['ABCDE', 'ABC', 'A', 0],
    ['ABCDEFGHI', 'ABCDEFGH', 'A', 0],
    ['ABCD', 'CDE', 'C', 0],
    ['ABCDE', 'ABF', 'A', 0],
    ['ABCDEF', 'EFGHI', 'E', 0],
    ['ABCDEFG', 'CDEHI', 'C', 0],
    ['ABC', 'ADE', 'A', 0],
  ]
  it.each(survivors)(
    '%s → %s moves a client of the remaining server %s with the exact probability',
    (before, now, own, chance) => {
      const moves = (draw: number): boolean => {
        const hosts = new HostProvider(list(before), draws(draw), false)
        return hosts.updateServerList(list(now), at(own), false)
      }
      if (chance > 0) expect(moves(chance - 0.000_001)).toBe(true)
      expect(moves(chance + 0.000_001)).toBe(false)
    },
  )

  const removed: readonly [string, string, string, number, number][] = [
    ['ABCDEF', 'BCDEFGHI', 'A', 1, 0],
    ['ABCDE', 'ABC', 'D', 0, 1],
    ['ABCDEFGHI', 'ABCDEFGH', 'I', 0, 1],
    ['ABCD', 'CDE', 'A', 2 / 3, 1 / 3],
    ['ABCDE', 'ABF', 'C', 5 / 9, 4 / 9],
    ['ABCDEF', 'EFGHI', 'A', 9 / 10, 1 / 10],
    ['ABCDEFG', 'CDEHI', 'A', 7 / 10, 3 / 10],
    ['ABC', 'ADE', 'B', 1, 0],
    ['AB', 'CD', 'A', 1, 0],
    ['ABC', 'D', 'A', 1, 0],
    ['ABCD', 'ABCD', 'X', 0, 1],
  ]
  it.each(removed)(
    '%s → %s sends a client of the removed server %s to a new server with probability %d',
    (before, now, own, fresh) => {
      const first = (draw: number): string => {
        const hosts = new HostProvider(list(before), draws(draw), false)
        expect(hosts.updateServerList(list(now), at(own), false)).toBe(true)
        return hosts.next().server.host
      }
      if (fresh > 0) expect(before).not.toContain(first(fresh - 0.000_001))
      if (fresh < 1) expect(before).toContain(first(fresh + 0.000_001))
    },
  )

  const traces: readonly [string, string, string, number[], string][] = [
    ['ABC', 'ABCDE', 'A', [0.39], 'DEABC'],
    ['ABCD', 'CDE', 'A', [0.7, 0.1, 0.9], 'CED'],
    ['ABCD', 'CDE', 'A', [0.5, 0.1, 0.9], 'ECD'],
    ['ABCDE', 'ABF', 'C', [0.6, 0.55, 0.3], 'AFB'],
    ['ABCDEFG', 'CDEHI', 'A', [0.4, 0.5, 0.9, 0.1, 0.2], 'HICDE'],
  ]
  it.each(traces)(
    '%s → %s, connected to %s, visits all servers by the random numbers %j',
    (before, now, own, numbers, expected) => {
      const hosts = new HostProvider(list(before), draws(...numbers), false)
      expect(hosts.updateServerList(list(now), at(own), false)).toBe(true)
      expect(order(hosts, expected.length)).toBe(expected)
      expect(hosts.isRebalancing).toBe(true)
      // One more, and the round over the whole new list begins.
      expect(order(hosts, now.length)).toBe(now)
      expect(hosts.isRebalancing).toBe(false)
    },
  )

  it('leaves a client of a remaining server alone when the random number says so', () => {
    const hosts = new HostProvider(list('ABC'), draws(0.41), false)
    expect(hosts.updateServerList(list('ABCDE'), at('A'), false)).toBe(false)
    expect(hosts.isRebalancing).toBe(false)
    expect(order(hosts, 5)).toBe('BCDEA')
  })

  it('changes nothing when the servers are the same', () => {
    const hosts = new HostProvider(list('ABC'), draws(), false)
    hosts.next()
    expect(hosts.updateServerList(list('CAB'), at('A'), false)).toBe(false)
    expect(order(hosts, 3)).toBe('BCA')
  })

  it('recognises a server by the address behind its name', () => {
    const hosts = new HostProvider(list('AB'), draws(), false)
    const live = { server: server('A'), host: '10.0.0.1' }
    expect(hosts.updateServerList([server('10.0.0.1'), server('B')], live, false)).toBe(false)
  })

  it('uses the list of an earlier update whose move is not finished', () => {
    const hosts = new HostProvider(list('AB'), draws(0.1), false)
    expect(hosts.updateServerList(list('ABCD'), at('A'), false)).toBe(true)
    // The next server of the move would be C, which the second update removes.
    expect(hosts.updateServerList(list('ABD'), at('A'), false)).toBe(true)
    expect(order(hosts, 1)).toMatch(/[ABD]/)
  })

  it('ends a move when the client connects', () => {
    const hosts = new HostProvider(list('AB'), draws(), false)
    hosts.updateServerList(list('CD'), at('A'), false)
    const { server: next } = hosts.next()
    hosts.onConnected({ server: next })
    expect(hosts.isRebalancing).toBe(false)
  })

  it('spreads 10,000 clients evenly over every list of a series of updates', () => {
    const random = new SeededRandom(1355)
    const all = 'ABCDEFGHI'
    const clients = Array.from({ length: 10_000 }, () => {
      const hosts = new HostProvider(list(all), random)
      const { server: first } = hosts.next()
      hosts.onConnected({ server: first })
      return { hosts, attached: first }
    })
    for (const letters of ['ABCDEFGH', 'ABCDEF', 'BCDEFGHI', all]) {
      const counts = new Map<string, number>()
      for (const client of clients) {
        if (client.hosts.updateServerList(list(letters), { server: client.attached })) {
          const { server: next } = client.hosts.next()
          client.hosts.onConnected({ server: next })
          client.attached = next
        }
        counts.set(client.attached.host, (counts.get(client.attached.host) ?? 0) + 1)
      }
      expect([...counts.keys()].toSorted().join('')).toBe(letters)
      const mean = 10_000 / letters.length
      const deviation = Math.sqrt(mean * (1 - 1 / letters.length))
      for (const count of counts.values()) expect(Math.abs(count - mean)).toBeLessThan(5 * deviation)
    }
  })

  it('compares long lists, as a hostile server may send, in linear time', () => {
    const listOf = (name: string): ServerAddress[] =>
      Array.from({ length: 200 }, (_, i) => server(`${name}${i}`))
    const hosts = new HostProvider(listOf('a'), new SeededRandom(1))
    // Each comparison looks up the key of an address.
    const lookups = vi.spyOn(WeakMap.prototype, 'get')
    try {
      expect(isSameServerSet(listOf('a'), listOf('b'))).toBe(false)
      expect(isSameServerSet(listOf('a'), listOf('a').toReversed())).toBe(true)
      expect(hosts.updateServerList(listOf('b'), { server: server('a0') })).toBe(true)
      expect(hosts.updateServerList(listOf('b'), { server: server('b199') })).toBe(false)
      expect(lookups.mock.calls.length).toBeLessThan(10_000)
    } finally {
      lookups.mockRestore()
    }
  })

  it('randomFraction returns numbers from 0 up to 1', () => {
    expect(randomFraction(draws(0))).toBe(0)
    expect(
      randomFraction({ below: (limit) => limit - 1, bytes: (length) => new Uint8Array(length) }),
    ).toBeLessThan(1)
  })
})
