import type { HttpRequest } from '@zabra/runtime'
import { afterEach, describe, expect, it } from 'vitest'
import { TestServer } from '../../testing/test-server.ts'
import { TrustedProxies } from './trusted-proxies.ts'

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

/** Returns who has sent a request of this address with this header. */
function callerOf(
  proxies: readonly string[],
  host: string,
  header?: string | readonly string[],
): readonly [host: string, forwarded: string | undefined] {
  const request: HttpRequest = {
    method: 'GET',
    path: '/',
    query: new URLSearchParams(),
    headers: header === undefined ? {} : { 'x-forwarded-for': header },
    remote: { host, port: 1 },
    isSecure: false,
    peer: undefined,
    body: emptyBody(),
  }
  const { remote, forwarded } = new TrustedProxies(proxies).callerOf(request)
  return [remote.host, forwarded]
}

const PROXIES = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8']

describe('the caller of a request', () => {
  it.each([
    ['the address of the connection, whatever a header says that comes from no proxy', '1.2.3.4', '5.6.7.8'],
    ['the address of the connection without a header', '1.2.3.4', undefined],
  ])('is %s', (_, host, header) => {
    expect(callerOf(PROXIES, host, header)).toEqual([host, undefined])
    expect(callerOf([], '127.0.0.1', '5.6.7.8')).toEqual(['127.0.0.1', undefined])
  })

  it('has an IPv4 address where the connection maps it into IPv6', () => {
    expect(callerOf([], '::ffff:1.2.3.4')).toEqual(['1.2.3.4', undefined])
    expect(callerOf(PROXIES, '::ffff:10.0.0.1', '5.6.7.8')).toEqual(['5.6.7.8', 'named'])
  })

  it.each<readonly [what: string, header: string | readonly string[], host: string]>([
    ['the one that the proxy has added', '5.6.7.8', '5.6.7.8'],
    ['not what it has sent itself', '127.0.0.1, 5.6.7.8', '5.6.7.8'],
    ['not what it has sent itself as garbage', 'x, "", 10.0.0.1, 5.6.7.8', '5.6.7.8'],
    ['behind several proxies', '1.1.1.1, 5.6.7.8, 10.0.0.7,fd00::1', '5.6.7.8'],
    ['in several headers', ['9.9.9.9', '5.6.7.8', '10.0.0.7'], '5.6.7.8'],
    ['without the port', '5.6.7.8:4711', '5.6.7.8'],
    ['with IPv6', '2001:DB8::1', '2001:db8:0:0:0:0:0:1'],
    ['with IPv6 in brackets', '[2001:db8::1]', '2001:db8:0:0:0:0:0:1'],
    ['with IPv6 in brackets and a port', '[2001:db8::1]:80', '2001:db8:0:0:0:0:0:1'],
    ['mapped into IPv6', '::ffff:5.6.7.8', '5.6.7.8'],
    ['mapped into IPv6 as hexadecimal groups', '[::ffff:506:708]:1', '5.6.7.8'],
    ['behind a proxy that is mapped into IPv6', '5.6.7.8, ::ffff:a00:1', '5.6.7.8'],
    ['after hundreds of entries', `${'6.6.6.6, '.repeat(800)}5.6.7.8`, '5.6.7.8'],
  ])('is the last address of the header that is no proxy: %s', (_, header, host) => {
    for (const proxy of ['10.0.0.1', '127.0.0.1', 'fd00::5'])
      expect(callerOf(PROXIES, proxy, header)).toEqual([host, 'named'])
  })

  it.each<readonly [what: string, header: string | readonly string[] | undefined]>([
    ['it has none', undefined],
    ['it is empty', ''],
    ['it ends with a comma', '5.6.7.8,'],
    ['it names proxies alone', '10.0.0.3, 10.0.0.2'],
    ['it names a host', 'client.example'],
    ['it names no address', 'unknown'],
    ['an address is signed', '+5.6.7.8'],
    ['an address has leading zeros', '05.6.7.8'],
    ['an address is too large', '5.6.7.256'],
    ['an address is short', '5.6.7'],
    ['a port is no number', '5.6.7.8:x'],
    ['a bracket is open', '[2001:db8::1'],
    ['an address of IPv6 is malformed', '2001:db8::1::2'],
    ['an address of IPv6 has an interface', 'fe80::1%eth0'],
    ['what stands behind the caller is malformed', '5.6.7.8, x, 10.0.0.2'],
    ['it names this machine', '127.0.0.2'],
    ['it names this machine with IPv6', '[::1]:80'],
    ['it names this machine, mapped into IPv6', '::ffff:7f00:2'],
    ['it names more proxies than are read', `5.6.7.8${', 10.0.0.2'.repeat(300)}`],
  ])('is unknown where the header is not one of a proxy: %s', (_, header) => {
    expect(callerOf(PROXIES, '10.0.0.1', header)).toEqual(['10.0.0.1', 'unnamed'])
  })
})

describe('a server behind a proxy', () => {
  let server: TestServer
  afterEach(() => server.stop())

  const start = async (settings: Parameters<typeof TestServer.start>[0]): Promise<void> => {
    server = await TestServer.start(settings)
    await server.connect()
  }
  const ask = async (from: string, header?: string, more: Record<string, string> = {}): Promise<number> => {
    const headers = { ...(header === undefined ? {} : { 'x-forwarded-for': header }), ...more }
    return (await server.http.request('/commands/monitor', { from, headers })).status
  }

  it('takes no caller of a proxy on its machine for one of its machine', async () => {
    await start({ adminTrustedProxies: ['127.0.0.2'] })
    expect(await ask('127.0.0.1')).toBe(200)
    expect(await ask('127.0.0.1', '5.6.7.8')).toBe(200)
    for (const header of [undefined, 'x', '5.6.7.8', '127.0.0.1', '127.0.0.2', '::1'])
      expect(await ask('127.0.0.2', header)).toBe(401)
    expect((await server.http.request('/livez', { from: '127.0.0.2' })).status).toBe(200)
    expect((await server.http.request('/metrics', { from: '127.0.0.2' })).status).toBe(200)
  })

  it('gives roles by the address that the proxy names, and none by its own', async () => {
    await start({ adminTrustedProxies: ['10.0.0.1'], adminRoleView: ['ip:10.0.0.0/8', 'ip:5.6.7.8'] })
    expect(await ask('10.0.0.9')).toBe(200)
    expect(await ask('10.0.0.1', '5.6.7.8')).toBe(200)
    expect(await ask('10.0.0.1', '10.0.0.9')).toBe(200)
    for (const header of [undefined, 'x', '5.6.7.9', '5.6.7.8, 5.6.7.9', '10.0.0.1'])
      expect(await ask('10.0.0.1', header)).toBe(401)
  })

  it('has the caller wait who guesses, not others behind the same proxy', async () => {
    await start({
      adminTrustedProxies: ['10.0.0.1'],
      adminRoleView: ['sasl:ada'],
      saslUsers: { ada: 'pass' },
    })
    const login = (password: string): Record<string, string> => ({
      authorization: `Basic ${btoa(`ada:${password}`)}`,
    })
    for (let guess = 0; guess < 3; guess++)
      expect(await ask('10.0.0.1', `${guess}.0.0.1, 5.6.7.8`, login(`${guess}`))).toBe(401)
    expect(await ask('10.0.0.1', '5.6.7.8', login('pass'))).toBe(429)
    expect(await ask('10.0.0.1', '5.6.7.9', login('pass'))).toBe(200)
  })

  it('names the caller in the audit log, without the connection of the proxy', async () => {
    await start({
      adminTrustedProxies: ['10.0.0.1'],
      adminRoleOperate: ['ip:5.6.7.8'],
      auditEnabled: true,
      auditEvents: ['admin'],
      auditFormat: 'json',
      auditFile: '/data/audit.log',
    })
    const reset = { from: '10.0.0.1', method: 'POST', headers: { 'x-forwarded-for': '6.6.6.6, 5.6.7.8:99' } }
    await server.http.request('/api/v1/drain', reset)
    await server.advance(2000)
    const line = await auditLine(server)
    expect(line).toMatchObject({ op: 'POST /api/v1/drain', result: 'success', ip: '5.6.7.8' })
    expect(line).not.toHaveProperty('port')
  })
})

async function auditLine(server: TestServer): Promise<unknown> {
  const names = (await server.disk.list('/data')).filter((name) => name.startsWith('audit'))
  const bytes = await server.disk.readFile(`/data/${names[0]!}`)
  return JSON.parse(new TextDecoder().decode(bytes).trimEnd().split('\n').at(-1)!)
}
