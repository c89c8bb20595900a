import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  parseConfiguration,
  printConfiguration,
  printDynamicFile,
  sameMembership,
  verifierOf,
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
} from './index.ts'

/** Text that a server of 3.8 prints after reading the lines of `written`. */
const captured = [
  'server.1=127.0.0.1:27201:27301|127.0.0.2:27201:27301:participant;0.0.0.0:27181',
  'server.2=127.0.0.1:27202:27302:participant;127.0.0.1:27182',
  'server.3=127.0.0.1:27203:27303:participant',
  'server.4=127.0.0.1:27204:27304:observer',
  'group.1=1:2',
  'group.7=3',
  'weight.1=1',
  'weight.2=1',
  'weight.3=0',
  'version=0',
].join('\n')
const written = [
  'server.1=127.0.0.1:27201:27301|127.0.0.2:27201:27301;27181',
  'server.2=127.0.0.1:27202:27302:participant;127.0.0.1:27182',
  'server.3=127.0.0.1:27203:27303',
  'server.4=127.0.0.1:27204:27304:OBSERVER',
  'group.1=1:2',
  'group.7=3',
  'weight.3=0',
].join('\n')

const port = fc.integer({ min: 1, max: 65_535 })
const host = fc.constantFrom('127.0.0.1', 'zk-1.example.org', '2001:db8::1', 'fe80::1%eth0')
const anyMember = fc.record(
  {
    addresses: fc.uniqueArray(
      fc
        .record({ host, quorumPort: port, electionPort: port })
        .filter(({ quorumPort, electionPort }) => quorumPort !== electionPort),
      { minLength: 1, maxLength: 3, selector: (address) => address.host },
    ),
    role: fc.constantFrom('participant' as const, 'observer' as const),
    client: fc.record({ host, port }),
  },
  { requiredKeys: ['addresses', 'role'] },
)
const anyConfiguration = fc
  .record({
    version: fc.maxSafeNat(),
    ids: fc.uniqueArray(fc.nat(255), { minLength: 1, maxLength: 7 }),
    members: fc.array(anyMember, { minLength: 7, maxLength: 7 }),
    grouped: fc.boolean(),
    weights: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 7, maxLength: 7 }),
  })
  .map(({ version, ids, members, grouped, weights }): EnsembleConfiguration => {
    const sorted = ids.sort((a, b) => a - b)
    const byId = new Map(sorted.map((id, i): [number, MemberConfiguration] => [id, { id, ...members[i]! }]))
    byId.set(sorted[0]!, { ...byId.get(sorted[0]!)!, role: 'participant' })
    const voters = votersOf({ version, members: byId })
    if (!grouped) return { version, members: byId }
    const groups = new Map([[1, voters.filter((_, i) => i % 2 === 0)]])
    if (voters.length > 1)
      groups.set(
        2,
        voters.filter((_, i) => i % 2 === 1),
      )
    return {
      version,
      members: byId,
      hierarchy: { groups, weights: new Map(voters.map((id, i) => [id, weights[i]!])) },
    }
  })

describe('an ensemble configuration', () => {
  it('prints the same text as Apache ZooKeeper', () => {
    expect(printConfiguration(parseConfiguration(written))).toBe(captured)
    expect(printConfiguration(parseConfiguration(captured))).toBe(captured)
  })

  it('yields the voters and their weights', () => {
    const configuration = parseConfiguration(written)
    expect(votersOf(configuration)).toEqual([1, 2, 3])
    expect(verifierOf(configuration).weightOf(3)).toBe(0)
    expect(verifierOf(configuration).isQuorum(new Set([1, 2]))).toBe(true)
    expect(
      verifierOf(parseConfiguration('server.1=a:1:2\nserver.2=b:1:2'), { oracle: true }).canAskOracle,
    ).toBe(true)
  })

  it('parses its own text back to an equal configuration', () => {
    fc.assert(
      fc.property(anyConfiguration, (configuration) => {
        const read = parseConfiguration(printConfiguration(configuration))
        expect(printConfiguration(read)).toBe(printConfiguration(configuration))
        expect(sameMembership(read, configuration)).toBe(true)
        expect(read.version).toBe(configuration.version)
        expect(votersOf(read)).toEqual(votersOf(configuration))
      }),
    )
  })

  it('parses its dynamic file, with the version of the file name, back to an equal configuration', () => {
    fc.assert(
      fc.property(anyConfiguration, (configuration) => {
        const file = printDynamicFile(configuration)
        const read = parseConfiguration(file, configuration.version)
        expect(printConfiguration(read)).toBe(printConfiguration(configuration))
        const proposed = printDynamicFile(configuration, { proposed: true })
        expect(proposed).toBe(`${file}\nversion=${configuration.version.toString(16)}`)
        expect(parseConfiguration(proposed).version).toBe(configuration.version)
      }),
    )
  })

  it('prints its dynamic file in alphabetical order, without a version and without a line break at the end', () => {
    const text = 'server.2=b:1:2\nserver.10=c:1:2\ngroup.1=2:10\nversion=1f'
    expect(printDynamicFile(parseConfiguration(text))).toBe(
      'group.1=2:10\nserver.10=c:1:2:participant\nserver.2=b:1:2:participant\nweight.10=1\nweight.2=1',
    )
  })

  it('prints groups, weights and the addresses of a server in order, however they were written', () => {
    const text =
      'server.1=b:1:2|a:1:2|c:1:2\nserver.2=d:1:2\nserver.10=e:1:2\ngroup.12=10\ngroup.2=2:1\nweight.10=12'
    expect(printConfiguration(parseConfiguration(text))).toBe(
      [
        'server.1=a:1:2|b:1:2|c:1:2:participant',
        'server.2=d:1:2:participant',
        'server.10=e:1:2:participant',
        'group.2=2:1',
        'group.12=10',
        'weight.1=1',
        'weight.2=1',
        'weight.10=12',
        'version=0',
      ].join('\n'),
    )
  })

  it('parses addresses and the client port with spaces around them', () => {
    const text = 'server.1=a:1:2 | b:1:2 ; 2181\nversion=0'
    expect(printConfiguration(parseConfiguration(text))).toBe(
      'server.1=a:1:2|b:1:2:participant;0.0.0.0:2181\nversion=0',
    )
  })

  it.each([false, true])('asks an oracle only where one is configured: %s', (oracle) => {
    const two = parseConfiguration('server.1=a:1:2\nserver.2=b:1:2')
    expect(verifierOf(two, { oracle }).canAskOracle).toBe(oracle)
    expect(verifierOf(two).canAskOracle).toBe(false)
  })

  it('equals one with the same members in another order and with another version', () => {
    const a = parseConfiguration('server.1=a:1:2\nserver.2=b:1:2\nversion=5')
    const b = parseConfiguration('server.2=b:1:2:participant\nserver.1=a:1:2')
    expect(sameMembership(a, b)).toBe(true)
    expect(sameMembership(a, parseConfiguration('server.1=a:1:2\nserver.2=b:1:2:observer'))).toBe(false)
    expect(sameMembership(a, parseConfiguration('server.1=a:1:2\nserver.2=b:1:3'))).toBe(false)
  })

  it('parses and prints IPv6 addresses in brackets', () => {
    const text = 'server.1=[2001:db8::1]:2888:3888:participant;[::]:2181'
    const { addresses, client } = parseConfiguration(text).members.get(1)!
    expect([addresses[0]!.host, client!.host]).toEqual(['2001:db8::1', '::'])
    expect(printConfiguration(parseConfiguration(text))).toBe(`${text}\nversion=0`)
  })

  it.each([
    ['tickTime=5', 'line 1: expected server.N, group.N, weight.N or version, got "tickTime".'],
    ['server.x=a:1:2', 'line 1: expected server.N'],
    ['xserver.1=a:1:2', 'line 1: expected server.N'],
    ['server.1x=a:1:2', 'line 1: expected server.N'],
    ['server.1=a:1:2\nversion=x5', 'line 2: expected a zxid in hexadecimal'],
    ['server.1=a:1:2\nversion=5x', 'line 2: expected a zxid in hexadecimal'],
    ['server.1=a:1:2\nweight.1=1x', 'expected a weight'],
    [`server.1=${'x'.repeat(81)}`, `got "${'x'.repeat(80)}…"`],
    ['server.1=a:1', 'line 1: expected host:quorumPort:electionPort'],
    ['server.1=a:1:1', 'different ports'],
    ['server.1=a:0:1', 'expected a port from 1 to 65535, got 0'],
    ['server.1=a:1:70000', 'expected a port from 1 to 65535, got 70000'],
    ['server.1=a:1:2;3;4', 'at most one ";"'],
    ['server.1=a:1:2;b', 'expected [address:]clientPort, got "b"'],
    ['server.1=a:1:2:participant|b:1:2:observer', 'expected one role for all addresses'],
    ['server.1=a:1:2\nserver.1=b:1:2', 'line 2: server.1 repeats line 1'],
    ['server.1=a:1:2:observer', 'expected at least one participant'],
    ['server.1=a:1:2\nversion=xyz', 'line 2: expected a zxid in hexadecimal'],
    ['server.1=a:1:2\nversion=ffffffffffffffff', 'expected a zxid in hexadecimal'],
    ['server.1=a:1:2\nweight.1=-1', 'expected a weight'],
    ['server.1=a:1:2\nweight.1=1', 'server 1 is in no group'],
    ['server.1=a:1:2\ngroup.1=1,2', 'expected server ids separated by ":"'],
    ['server.1=a:1:2\ngroup.1=1:2', 'server 2 is no participant'],
    ['server.1=a:1:2\ngroup.1=1\ngroup.2=1', 'line 3: server 1 is already in group 1'],
    ['server.1=a:1:2\ngroup.1=1\nweight.2=1', 'weight.2: server 2 is no participant'],
    ['server.1=a:1:2\ngroup.1=1\nweight.1=0', 'no server could be elected'],
    ['server.1=\\u00zz', 'line 1: expected four hexadecimal digits'],
  ])('rejects %j with the reason', (text, why) => {
    expect(() => parseConfiguration(text)).toThrow(ConfigurationError)
    expect(() => parseConfiguration(text)).toThrow(why)
  })

  it('rejects a version line in a file whose name contains the version', () => {
    expect(() => parseConfiguration('server.1=a:1:2\nversion=5', 5)).toThrow(
      'line 2: the file name already contains the version',
    )
  })
})
