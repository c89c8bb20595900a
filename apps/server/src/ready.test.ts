import { defaults } from '@zabra/server/settings'
import { expect, test } from 'vitest'
import { readyBlock, readyInfo, type ListeningPort } from './ready.ts'

const settings = defaults({ dataDir: '/data' })
const plain: ListeningPort = { key: 'clientPort', address: { host: '::', port: 2181 }, secure: false }
const tls: ListeningPort = {
  key: 'secureClientPort',
  address: { host: '127.0.0.1', port: 2281 },
  secure: true,
}
const web: ListeningPort = { key: 'webSocketPort', address: { host: '::1', port: 8081 }, secure: false }

test('the announcement has a line per port, with its protocol', () => {
  expect(readyBlock(readyInfo([plain, tls, web], settings))).toBe(`
  Serving on port 2181, all interfaces
             127.0.0.1:2281 (TLS)
             [::1]:8081 (ws)
  Access     no authentication: every client that reaches these ports is served
  Data in    /data
  Try it     zkCli.sh -server 127.0.0.1:2181   or   echo srvr | nc 127.0.0.1 2181
  Stop it    Ctrl-C

`)
})

test('the command to try fits the first port', () => {
  expect(readyInfo([tls, web], settings).next).toMatch(
    /^zkCli\.sh -server 127\.0\.0\.1:2281 -client-conf.*openssl s_client/,
  )
  expect(readyInfo([{ ...web, secure: true }], settings).next).toBe("new WebSocket('wss://[::1]:8081/')")
})

test('a member of an ensemble announces that it listens, not that it serves', () => {
  const members = new Map([1, 2, 3].map((id) => [id, {} as never]))
  const member = { ...settings, serverId: 2, ensemble: { version: 0, members } }
  expect(readyBlock(readyInfo([plain], member))).toBe(`
  Listens on port 2181, all interfaces
  Member     2 of 3, looking for a leader; it serves once there is one
  Access     no authentication: every client that reaches these ports is served
  Data in    /data
  Try it     zkCli.sh -server 127.0.0.1:2181   or   echo srvr | nc 127.0.0.1 2181
  Stop it    Ctrl-C

`)
})

test('the announcement says that there is no authentication, unless clients have to prove who they are', () => {
  const accessOf = (ports: readonly ListeningPort[], more: object): string | undefined =>
    readyInfo(ports, { ...settings, ...more }).access
  const text = 'no authentication: every client that reaches these ports is served'
  expect(accessOf([plain], {})).toBe(text)
  expect(accessOf([plain], { requireSasl: true })).toBeUndefined()
  expect(accessOf([plain], { enforceAuthEnabled: true })).toBeUndefined()
  expect(accessOf([tls], { sslClientAuth: 'need' })).toBeUndefined()
  expect(accessOf([tls], { sslClientAuth: 'want' })).toBe(text)
  expect(accessOf([tls, plain], { sslClientAuth: 'need' })).toBe(text)
})
