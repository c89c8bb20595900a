import { describe, expect, it } from 'vitest'
import { addressKey, parseServers } from './connect-string.ts'

const read = (text: string | string[], chroot?: string): string => {
  const { servers, chroot: root } = parseServers(text, chroot)
  return `${servers.map(addressKey).join(' ')} ${root}`
}

describe('parseServers', () => {
  it.each([
    ['a', 'tcp://a:2181 '],
    ['a:', 'tcp://a:2181 '],
    ['a:1,b:2', 'tcp://a:1 tcp://b:2 '],
    ['a:1, b:2', 'tcp://a:1 tcp://b:2 '],
    ['a:1,b:2/app', 'tcp://a:1 tcp://b:2 /app'],
    ['a:1/app/deep', 'tcp://a:1 /app/deep'],
    ['a:1/', 'tcp://a:1 '],
    ['a:1,a:1', 'tcp://a:1 '],
    ['[::1]:2182/app', 'tcp://[::1]:2182 /app'],
    ['[::1]', 'tcp://[::1]:2181 '],
    ['tls://a,tcp://b/app', 'tls://a:2281 tcp://b:2181 /app'],
    ['ws://a/zk', 'ws://a/zk '],
    ['wss://a:8443/zk?x=1', 'wss://a:8443/zk?x=1 '],
  ])('%s', (text, expected) => {
    expect(read(text)).toBe(expected)
  })

  it('a list of addresses is accepted, with the chroot as an option', () => {
    expect(read(['a:1', 'ws://b/zk'], '/app')).toBe('tcp://a:1 ws://b/zk /app')
    expect(read('a:1/app', '/app')).toBe('tcp://a:1 /app')
  })

  it.each([
    ['', 'Expected a server as host:port, got ""'],
    [',', 'Expected a server as host:port, got ""'],
    ['a:0', 'Expected a port from 1 to 65535, got 0'],
    ['a:65536', 'Expected a port from 1 to 65535, got 65536'],
    ['a:x', 'Expected a server as host:port, got "a:x"'],
    [':2181', 'Expected a server as host:port, got ":2181"'],
    ['::1', 'write an IPv6 address in brackets'],
    ['ftp://a', 'Expected a server with scheme tcp, tls, ws or wss, got "ftp"'],
    ['a/app/', 'Expected a chroot that is a path: Expected no / at the end'],
    ['a/app/../b', 'Expected a chroot that is a path: Expected no relative component'],
    ['ws://', 'Expected a WebSocket address'],
  ])('the connect string %s is rejected', (text, message) => {
    expect(() => parseServers(text)).toThrow(message)
  })

  it('an empty list and two different chroots are rejected', () => {
    expect(() => parseServers([])).toThrow('Expected at least one server')
    expect(() => parseServers('a/x', '/y')).toThrow('Expected one chroot')
  })
})
