import { describe, expect, it } from 'vitest'
import { apacheLine, jsonFields, originOf } from './audit-event.ts'

const remote = { host: '10.0.0.7', port: 50_123 }

describe('an audit event', () => {
  it('has as JSON the protocol, the cipher suite and the subject of its TLS connection', () => {
    const tls = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' }
    const origin = originOf(remote.host, {
      remote,
      tls,
      peer: { subject: 'CN=alice', alternativeNames: [] },
    })
    const event = { category: 'auth', operation: 'login', result: 'success', origin } as const
    const fields: unknown = JSON.parse(JSON.stringify(jsonFields(event, { time: 0, id: 1, serverId: 2 })))
    expect(fields).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      id: 1,
      member: 2,
      event: 'auth',
      op: 'login',
      result: 'success',
      port: 50_123,
      tls: { ...tls, subject: 'CN=alice' },
    })
  })

  it('has no TLS fields of a plain connection', () => {
    expect(originOf(remote.host, { remote })).toEqual({ ip: remote.host, port: remote.port, tls: undefined })
  })

  it('has in the form of Apache ZooKeeper none of the fields that only JSON has', () => {
    const origin = originOf(remote.host, { remote, tls: { version: 'TLSv1.3', cipher: 'X' } })
    const event = { category: 'writes', operation: 'setData', result: 'success', path: '/a' } as const
    const more = { ...event, origin, via: 'zk', version: 2, versionBefore: 1, xid: 3 } as const
    expect(apacheLine(more)).toBe(apacheLine(event))
  })
})
