import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tlsNetwork } from '@zabra/runtime/node'
import { createAuthority, issueCertificate } from '@zabra/runtime/node/certificate-authority'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CommandRun, type RunResult } from './testing/cli-fixture.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'zabra-cert-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const run = (...argv: string[]): Promise<RunResult> =>
  new CommandRun(['cert', ...argv], undefined, { input: '' }).ended
const cert = (command: string, ...argv: string[]): Promise<RunResult> =>
  run(command, '--dir', folder, ...argv)
const path = (name: string): string => join(folder, name)
const modeOf = (name: string): number => statSync(path(name)).mode & 0o777

describe('zabra cert', () => {
  it('makes an authority and a member that TLS accepts in both directions', async () => {
    expect(await cert('init-ca')).toMatchObject({
      code: 0,
      out: `${path('authority.pem')}\n${path('authority.key')}\n`,
    })
    const issued = await cert('issue', '--member', '1', '--hosts', 'localhost,127.0.0.1')
    expect(issued).toMatchObject({ code: 0, out: `${path('server-1.pem')}\n` })
    expect(issued.err).toContain(`ssl.quorum.keyStore.location=${path('server-1.pem')}`)
    const network = tlsNetwork({
      keyStore: { path: path('server-1.pem') },
      trustStore: { path: path('authority.pem') },
      clientAuth: 'need',
    })
    const names = new Promise((resolve) => {
      void network
        .listen({ host: '127.0.0.1', port: 0 }, (connection) => {
          resolve(connection.peer)
          connection.setHandler({ data() {}, drain() {}, closed() {} })
        })
        .then(async (listener) => {
          const connection = await network.connect(listener.address)
          connection.setHandler({ data() {}, drain() {}, closed() {} })
          await names
          connection.destroy()
          await listener.close()
        })
    })
    expect(await names).toMatchObject({
      subject: 'CN=server 1',
      alternativeNames: expect.arrayContaining([{ type: 6, value: 'spiffe://zabra/member/1' }]),
    })
  })

  it('writes keys that only their owner can read, and overwrites none', async () => {
    await cert('init-ca')
    await cert('issue', '--client', 'ada')
    expect([modeOf('authority.key'), modeOf('client-ada.pem')]).toEqual([0o600, 0o600])
    const before = readFileSync(path('authority.key'), 'utf8')
    expect(await cert('init-ca')).toMatchObject({ code: 2, err: expect.stringContaining('exists already') })
    expect(await cert('issue', '--client', 'ada')).toMatchObject({
      code: 2,
      err: expect.stringContaining('zabra cert renew renews it'),
    })
    expect(readFileSync(path('authority.key'), 'utf8')).toBe(before)
  })

  it('renews a certificate with its names and a new key', async () => {
    await cert('init-ca')
    await cert('issue', '--member', '2', '--hosts', 'zk2.example', '--days', '5')
    const before = readFileSync(path('server-2.pem'), 'utf8')
    writeFileSync(path('server-2.pem.new'), 'mine')
    const files = readdirSync(folder).toSorted()
    expect(await cert('renew', path('server-2.pem'), '--days', '30')).toMatchObject({ code: 0 })
    expect(readFileSync(path('server-2.pem'), 'utf8')).not.toBe(before)
    expect(readFileSync(path('server-2.pem.new'), 'utf8')).toBe('mine')
    expect(readdirSync(folder).toSorted()).toEqual(files)
    expect(modeOf('server-2.pem')).toBe(0o600)
    const shown = await new CommandRun(['--json', 'cert', 'show', path('server-2.pem')], undefined, {
      input: '',
    }).ended
    expect(JSON.parse(shown.out)).toMatchObject({
      subject: 'CN=server 2',
      issuer: 'CN=Zabra',
      names: ['DNS:zk2.example', 'URI:spiffe://zabra/member/2'],
      daysLeft: 29,
      isAuthority: false,
    })
  })

  it('prints the files that it makes as JSON with --json', async () => {
    const made = async (command: string, ...argv: string[]): Promise<unknown> =>
      JSON.parse((await cert(command, ...argv, '--json')).out)
    expect(await made('init-ca')).toEqual({ certificate: path('authority.pem'), key: path('authority.key') })
    expect(await made('issue', '--client', 'ada')).toEqual({ file: path('client-ada.pem') })
    expect(await made('renew', path('client-ada.pem'))).toEqual({ file: path('client-ada.pem') })
  })

  it('shows a certificate in lines, and fails for one that has ended', async () => {
    const authority = createAuthority({ name: 'A', days: 900, from: new Date('2024-01-01') })
    const old = issueCertificate(
      { ...createAuthority({ name: 'A', days: 3000, from: new Date('2024-01-01') }) },
      { name: 'old', days: 10, hosts: ['x'], from: new Date('2024-01-01') },
    )
    writeFileSync(path('authority.pem'), authority.certificate)
    writeFileSync(path('old.pem'), old.certificate)
    const { code, out, err } = await run('show', path('old.pem'))
    expect([code, out]).toEqual([
      20,
      `${path('old.pem')}:\n  subject  CN=old\n  names    DNS:x\n  issuer   CN=A\n  valid    2024-01-01T00:00:00.000Z to 2024-01-11T00:00:00.000Z (it has ended)\n`,
    ])
    expect(err).toContain('1 of 1 certificates have ended. Renew them.')
  })

  it.each([
    [['issue', '--client', 'ada'], /There is no file .*authority\.pem.*zabra cert init-ca/s],
    [['renew', '/nowhere.pem'], /There is no file/],
  ])('%j without an authority says how to make one', async (argv, message) => {
    const [command = '', ...rest] = argv
    expect(await cert(command, ...rest)).toMatchObject({ code: 2, err: expect.stringMatching(message) })
  })

  it.each([
    [['issue'], /either --member N with --hosts, or --client/],
    [['issue', '--member', '1'], /Expected --hosts with the hosts in the line server\.1/],
    [['issue', '--member', '1', '--hosts', 'a b'], /Expected a host name or an address, got "a b"/],
    [['issue', '--member', '300', '--hosts', 'a'], /255/],
    [['issue', '--client', '../x'], /up to 64 letters/],
  ])('%j is refused', async (argv, message) => {
    await cert('init-ca')
    const [command = '', ...rest] = argv
    expect(await cert(command, ...rest)).toMatchObject({ code: 2, err: expect.stringMatching(message) })
  })

  it('says what a file without a certificate lacks', async () => {
    writeFileSync(path('x.pem'), 'hello')
    expect(await run('show', path('x.pem'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected a certificate in PEM'),
    })
  })
})
