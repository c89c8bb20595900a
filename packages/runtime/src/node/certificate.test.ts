import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { identityOf } from './certificate.ts'

/** The first certificate of a PEM file of the test data. */
function certificate(name: string): Uint8Array {
  const text = readFileSync(new URL(`../testdata/tls/${name}`, import.meta.url), 'utf8')
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([^-]*)/.exec(text) ?? []
  return Uint8Array.from(Buffer.from(base64, 'base64'))
}

describe('the subject of a certificate', () => {
  it('begins with its last part and escapes what separates parts', () => {
    expect(identityOf(certificate('alice.pem')).subject).toBe('CN=alice,OU=Tests,O=Zabra\\, Inc.,C=DE')
  })

  it('has a number and bytes in hex where RFC 2253 knows no word, as Java has it', () => {
    expect(identityOf(certificate('odd.pem')).subject).toBe(
      'OU=a+CN=\\ \\#1 \\<\\"ü\\;\\=\\,\\ ,1.2.840.113549.1.9.1=#16116f6464407a616272612e6578616d706c65,UID=u7,DC=example',
    )
  })
})

describe('the further names of a certificate', () => {
  it('come with their types in their order', () => {
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

  it('are none in a certificate that has none', () => {
    expect(identityOf(certificate('odd.pem')).alternativeNames).toEqual([])
  })
})

describe('bytes that are no certificate', () => {
  it.each([
    [[]],
    [[0x30]],
    [[0x30, 0x80]],
    [[0x30, 0x85, 1, 1, 1, 1, 1]],
    [[0x30, 5, 1]],
    [[0x30, 2, 0x30, 0]],
  ])('%j are refused', (bytes) => {
    expect(() => identityOf(Uint8Array.from(bytes))).toThrow(RangeError)
  })
})
