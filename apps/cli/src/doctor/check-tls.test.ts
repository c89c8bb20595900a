import { createAuthority, issueCertificate } from '@zabra/runtime/node/certificate-authority'
import { loadSettings, type ServerSettings } from '@zabra/server/settings'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { collect, idsOf } from '../testing/findings.ts'
import { checkTls } from './check-tls.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-doctor-tls-'))
const testdata = (name: string): string =>
  join(import.meta.dirname, '../../../../packages/runtime/src/testdata/tls', name)
const file = (name: string, ...parts: readonly string[]): string => {
  const path = join(folder, name)
  writeFileSync(path, parts.join('\n'))
  return path
}

const authority = createAuthority({ name: 'A', days: 3650 })
const trust = file('authority.pem', authority.certificate)
const issue = (name: string, hosts: readonly string[], days = 365): string => {
  const { key, certificate } = issueCertificate(authority, { name, hosts, days })
  return file(`${name}.pem`, key, certificate)
}
const own = issue('own', ['zk1.example'])
const CA = [`ssl.quorum.trustStore.location=${trust}`]

function settingsOf(lines: readonly string[]): ServerSettings {
  const members = [1, 2, 3].map((id) => `server.${id}=zk${id}.example:2888:3888`)
  const text = ['dataDir=/data', 'tickTime=2000', 'initLimit=10', 'syncLimit=5', ...members, ...lines].join(
    '\n',
  )
  const files = {
    read: (path: string) => (path.endsWith('/myid') ? '1' : undefined),
    resolve: (path: string) => path,
  }
  return loadSettings({ file: { name: 'zoo.cfg', text }, files }).settings!
}

const members = (keyStore: string, ...more: readonly string[]): ServerSettings =>
  settingsOf([
    'sslQuorum=true',
    'secureClientPort=2281',
    `ssl.keyStore.location=${own}`,
    `ssl.trustStore.location=${trust}`,
    `ssl.quorum.keyStore.location=${keyStore}`,
    ...(more.length > 0 ? more : CA),
  ])
const check = (settings: ServerSettings, now = Date.now()): Promise<string[]> =>
  idsOf(checkTls(settings, now))

it('nothing is found without TLS, and in certificates that fit', async () => {
  expect(await check(settingsOf(['clientPort=2181']))).toEqual([])
  expect(await check(members(own))).toEqual([])
})

it.each([
  ['a file that is missing', () => members('/none.pem'), 'tls-store'],
  [
    'a key of another certificate',
    () =>
      members(
        file(
          'mixed.pem',
          authority.key,
          issueCertificate(authority, { name: 'x', hosts: [], days: 1 }).certificate,
        ),
      ),
    'tls-store',
  ],
  ['a store of Java', () => members(testdata('server.jks')), 'tls-store'],
  ['an authority that other members do not trust', () => members(testdata('stranger.pem')), 'tls-chain'],
  ['other names than those of the member', () => members(issue('elsewhere', ['zk9.example'])), 'tls-name'],
  ['a certificate that has ended', () => members(testdata('expired.pem')), 'tls-over'],
  ['a certificate that has not begun', () => members(testdata('early.pem')), 'tls-over'],
  ['a certificate that ends soon', () => members(issue('soon', ['zk1.example'], 20)), 'tls-ends'],
  [
    'a list of revoked certificates that is over',
    () => members(own, ...CA, 'ssl.quorum.crl=true', `ssl.quorum.crl.location=${testdata('over.crl')}`),
    'tls-list-over',
  ],
])('%s is found', async (_, settings, id) => {
  expect(await check(settings())).toContain(id)
})

it('a list that ends within two days is found, and none that is fresh', async () => {
  const lists = [...CA, 'ssl.quorum.crl=true', `ssl.quorum.crl.location=${testdata('over.crl')}`]
  const [begins, ends] = [Date.parse('2019-12-30T00:00:00Z'), Date.parse('2020-01-02T00:00:00Z')]
  const listsFound = async (now: number) =>
    (await check(members(own, ...lists), now)).filter((id) => id.startsWith('tls-list'))
  expect(await listsFound(ends - 3_600_000)).toEqual(['tls-list-ends'])
  expect(await listsFound(begins)).toEqual([])
})

it('weak keys are found, and the files are named without their passwords', async () => {
  for (const [name, text] of [
    ['weak-key.pem', 'a key RSA of 1024 bits'],
    ['weak-hash.pem', 'a signature with SHA-1'],
  ] as const)
    expect(await collect(checkTls(members(testdata(name)), Date.now()))).toContainEqual(
      expect.objectContaining({ id: 'tls-weak', evidence: expect.stringContaining(text) as unknown }),
    )
  const locked = members(testdata('server.p12'), ...CA, 'ssl.quorum.keyStore.password=hidden-password')
  const [found] = await collect(checkTls(locked, Date.now()))
  expect(found).toMatchObject({ id: 'tls-store', where: testdata('server.p12') })
  expect(JSON.stringify(found)).not.toContain('hidden-password')
})

it('a certificate for clients may be of an authority that is not here, which is said', async () => {
  const lines = (...more: readonly string[]) =>
    settingsOf(['secureClientPort=2281', `ssl.keyStore.location=${own}`, ...more])
  expect(await check(lines('ssl.clientAuth=none'))).toEqual(['tls-chain-not-known'])
  expect(await check(lines(`ssl.trustStore.location=${trust}`))).toEqual([])
})
