import { expect, it } from 'vitest'
import { AddressRecords, Rank } from './address-records.ts'

it('an address that has failed ranks below others for 30 s from its first failure, or until a client of it is ready', () => {
  let now = 0
  const records = new AddressRecords(() => now)
  const ranks = (...hosts: string[]) => hosts.map((host) => records.rankOf(host))
  for (const host of ['a', 'b']) records.fail(host)
  now = 20_000
  records.fail('a')
  records.succeed('b')
  expect(ranks('a', 'b', 'c')).toEqual([Rank.FAILED, Rank.UNKNOWN, Rank.UNKNOWN])
  now = 30_000
  expect(ranks('a')).toEqual([Rank.UNKNOWN])
  records.fail('a')
  expect(ranks('a')).toEqual([Rank.FAILED])
})

it('an address that has shown a trusted certificate ranks above others, whatever else fails there', () => {
  const records = new AddressRecords(() => 0)
  records.trust('a')
  records.fail('a')
  expect([records.rankOf('a'), records.isTrusted('a')]).toEqual([Rank.TRUSTED, true])
})

it('an address is unknown until a client of it is ready, or has shown a long chain', () => {
  const records = new AddressRecords(() => 0)
  records.succeed('ready')
  records.suspect('suspected')
  records.fail('failed')
  const unknown = ['ready', 'suspected', 'failed', 'other'].map((host) => records.isUnknown(host))
  expect(unknown).toEqual([false, false, true, true])
})

it('an address that has shown a long chain is not trusted any more, whatever it shows then', () => {
  const records = new AddressRecords(() => 0)
  records.trust('a')
  records.suspect('a')
  records.trust('a')
  expect([records.rankOf('a'), records.isTrusted('a'), records.isUnknown('a')]).toEqual([
    Rank.TRUSTED,
    false,
    false,
  ])
})

it('ten thousand addresses of each kind are known', () => {
  const records = new AddressRecords(() => 0)
  for (let host = 0; host <= 10_000; host++) {
    records.fail(`failed ${host}`)
    records.trust(`trusted ${host}`)
    records.suspect(`trusted ${host + 9000}`)
    records.succeed(`ready ${host}`)
  }
  const ranks = ['failed 0', 'failed 1', 'trusted 0', 'trusted 1'].map((host) => records.rankOf(host))
  expect(ranks).toEqual([Rank.UNKNOWN, Rank.FAILED, Rank.UNKNOWN, Rank.TRUSTED])
  const trusted = ['trusted 8999', 'trusted 9000', 'trusted 9001'].map((host) => records.isTrusted(host))
  expect(trusted).toEqual([true, true, false])
  expect(['ready 0', 'ready 1'].map((host) => records.isUnknown(host))).toEqual([true, false])
})
