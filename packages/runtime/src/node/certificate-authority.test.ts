import { createPrivateKey, X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { identityOf } from './certificate.ts'
import { createAuthority, issueCertificate, renewCertificate } from './certificate-authority.ts'

const authority = createAuthority({ name: 'Test members', days: 3650 })
const issued = issueCertificate(authority, {
  name: 'server 1',
  days: 365,
  hosts: ['zk1.example', '10.0.0.1', '::1'],
  uris: ['spiffe://zabra/member/1'],
})

describe('a certificate that an authority issues', () => {
  const certificate = new X509Certificate(issued.certificate)

  it('is signed by the authority and has the key that is returned with it', () => {
    const issuer = new X509Certificate(authority.certificate)
    expect(certificate.verify(issuer.publicKey)).toBe(true)
    expect(certificate.checkIssued(issuer)).toBe(true)
    expect(certificate.checkPrivateKey(createPrivateKey(issued.key))).toBe(true)
    expect([issuer.ca, certificate.ca]).toEqual([true, false])
  })

  it('names hosts, addresses and URIs, and is usable at both ends of a connection', () => {
    expect(identityOf(certificate.raw)).toEqual({
      subject: 'CN=server 1',
      alternativeNames: [
        { type: 2, value: 'zk1.example' },
        { type: 7, value: '10.0.0.1' },
        { type: 7, value: '0:0:0:0:0:0:0:1' },
        { type: 6, value: 'spiffe://zabra/member/1' },
      ],
    })
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
  })

  it('ends with its authority at the latest', () => {
    const short = createAuthority({ name: 'short', days: 2 })
    const long = issueCertificate(short, { name: 'x', days: 500, hosts: ['x'] })
    expect(new X509Certificate(long.certificate).validTo).toBe(new X509Certificate(short.certificate).validTo)
  })

  it('is renewed with the same names and a new key', () => {
    const renewed = renewCertificate(authority, issued.certificate, { days: 9 })
    expect(renewed.key).not.toBe(issued.key)
    const again = new X509Certificate(renewed.certificate)
    expect(again.checkPrivateKey(createPrivateKey(renewed.key))).toBe(true)
    expect(identityOf(again.raw)).toEqual(identityOf(certificate.raw))
  })
})

describe('an authority', () => {
  it.each([
    ['with the key of another one', { ...authority, key: issued.key }, /private key of the authority/],
    ['that may not sign', issued, /may not sign others/],
    [
      'that has ended',
      createAuthority({ name: 'old', days: 1, from: new Date('2020-01-01') }),
      /ended at 2020-01-02/,
    ],
  ])('%s issues nothing', (_, wrong, message) => {
    expect(() => issueCertificate(wrong, { name: 'x', days: 1, hosts: ['x'] })).toThrow(message)
  })

  it.each(['a b', 'a/b', '', 'x'.repeat(254)])('refuses the host name %j', (host) => {
    expect(() => issueCertificate(authority, { name: 'x', days: 1, hosts: [host] })).toThrow(/host name/)
  })
})
