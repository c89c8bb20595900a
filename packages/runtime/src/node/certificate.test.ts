import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { identityOf } from './certificate.ts'

/** Returns the first certificate of a PEM file of the test data, in DER. */
function certificate(name: string): Uint8Array {
  const text = readFileSync(new URL(`../testdata/tls/${name}`, import.meta.url), 'utf8')
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([^-]*)/.exec(text) ?? []
  return Uint8Array.from(Buffer.from(base64, 'base64'))
}

describe('the subject of identityOf', () => {
  it('begins with the last part and escapes separators', () => {
    expect(identityOf(certificate('alice.pem')).subject).toBe('CN=alice,OU=Tests,O=Zabra\\, Inc.,C=DE')
  })

  it('has an OID and hexadecimal bytes for attributes without a keyword in RFC 2253, as in Java', () => {
    expect(identityOf(certificate('odd.pem')).subject).toBe(
      'OU=a+CN=\\ \\#1 \\<\\"ü\\;\\=\\,\\ ,1.2.840.113549.1.9.1=#16116f6464407a616272612e6578616d706c65,UID=u7,DC=example',
    )
  })
})

describe('the alternativeNames of identityOf', () => {
  it('have their types and their order', () => {
    expect(identityOf(certificate('alice.pem')).alternativeNames).toEqual([
      { type: 6, value: 'urn:zabra:(alice;tests)' },
      { type: 1, value: 'alice@zabra.example' },
      { type: 2, value: 'alice.example' },
      { type: 7, value: '10.0.0.7' },
    ])
    expect(identityOf(certificate('server.pem')).alternativeNames.at(-1)).toEqual({
      type: 7,
      value: '0:0:0:0:0:0:0:1',
    })
  })

  it('are empty in a certificate without the extension', () => {
    expect(identityOf(certificate('odd.pem')).alternativeNames).toEqual([])
  })
})

describe('identityOf', () => {
  it.each([
    [[]],
    [[0x30]],
    [[0x30, 0x80]],
    [[0x30, 0x85, 1, 1, 1, 1, 1]],
    [[0x30, 5, 1]],
    [[0x30, 2, 0x30, 0]],
  ])('refuses %j, which is no certificate', (bytes) => {
    expect(() => identityOf(Uint8Array.from(bytes))).toThrow(RangeError)
  })
})
