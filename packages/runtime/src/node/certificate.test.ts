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

/** Returns a certificate with some bytes of its subject, which comes behind its issuer, replaced by as many others. */
function patched(name: string, from: Uint8Array, to: Uint8Array): Uint8Array {
  const bytes = Buffer.from(certificate(name))
  const at = bytes.lastIndexOf(from)
  expect(at).toBeGreaterThan(0)
  bytes.set(to, at)
  return bytes
}

describe('the subject of identityOf where a value is unusual', () => {
  it('does not take bytes that are no UTF-8 for characters, which are those of another name', () => {
    const { subject } = identityOf(patched('odd.pem', Buffer.from('ü'), Uint8Array.of(0xff, 0xfc)))
    expect(subject).toContain('CN=\\ \\#1 \\<\\"\ufffd\ufffd\\;')
  })

  it('has the bytes of an attribute without a keyword as they are', () => {
    // The OID of the OU, 2.5.4.11, becomes that of the title, 2.5.4.12, and its text is no UTF-8.
    const value = Buffer.concat([Uint8Array.of(0x0c, 5), Buffer.from('Tests')])
    const from = Buffer.concat([Uint8Array.of(0x55, 4, 11), value])
    const to = Buffer.from(from)
    to[2] = 12
    to[5] = 0xff
    const { subject } = identityOf(patched('alice.pem', from, to))
    expect(subject).toContain('2.5.4.12=#0c05ff65737473')
  })

  it.each([
    ['GeneralString', 0x1b, 'OU=Tests'],
    ['NumericString, which is no text here', 0x12, 'OU=#12055465737473'],
  ])('knows a %s', (_, tag, expected) => {
    const from = Buffer.concat([Uint8Array.of(0x0c, 5), Buffer.from('Tests')])
    const to = Buffer.from(from)
    to[0] = tag
    expect(identityOf(patched('alice.pem', from, to)).subject).toContain(expected)
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
