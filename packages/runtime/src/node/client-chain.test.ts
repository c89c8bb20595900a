import { generateKeyPairSync } from 'node:crypto'
import { expect, it } from 'vitest'
import { SeededRandom } from '../seeded-random.ts'
import {
  chainOf,
  der,
  explicitEcKey,
  identifier,
  linkOf,
  nameOf,
  publicKeyOf,
  rsaKey,
  type ChainLink,
} from './testing/client-chains.ts'
import { chainFault } from './client-chain.ts'

/** Returns bytes behind their length. */
const withLength = (lengthBytes: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  const length = Buffer.alloc(lengthBytes)
  length.writeUIntBE(body.length, 0, lengthBytes)
  return Buffer.concat([length, body])
}

/** Returns the message of a client with certificates. */
const messageOf = (certificates: readonly Uint8Array[], isTls13 = true): Buffer =>
  Buffer.concat([
    Buffer.alloc(isTls13 ? 1 : 0),
    withLength(
      3,
      ...certificates.flatMap((certificate) => [withLength(3, certificate), Buffer.alloc(isTls13 ? 2 : 0)]),
    ),
  ])

const faultOf = (...links: readonly ChainLink[]): string | undefined =>
  chainFault(messageOf(chainOf(links)), true)

/** Returns so many links with one key. */
const many = (count: number, link: ChainLink): ChainLink[] => Array.from({ length: count }, () => link)

const leaf = linkOf('prime256v1')
const extension = (kind: string, value: Uint8Array): Buffer => der(0x30, identifier(kind), der(0x04, value))
const names = (count: number): Buffer =>
  extension('551d11', der(0x30, ...Array.from({ length: count }, () => der(0x82, Buffer.from('a')))))
const constraints = (count: number): Buffer =>
  extension(
    '551d1e',
    der(0x30, der(0xa1, ...Array.from({ length: count }, () => der(0x30, der(0x82, Buffer.from('b')))))),
  )

it.each(['prime256v1', 'secp384r1', 'ed25519', 'ed448'])(
  'eight certificates of a client with keys of the kind %s are verified, and nine are not',
  (kind) => {
    const link = linkOf(kind)
    expect(faultOf(...many(8, link))).toBeUndefined()
    expect(faultOf(...many(9, link))).toBe(
      'it has shown more than 8 certificates, where one on P-521 counts as 2',
    )
  },
)

it('a certificate with a key on P-521 counts as two', () => {
  const link = linkOf('secp521r1')
  expect(faultOf(...many(4, link))).toBeUndefined()
  expect(faultOf(leaf, ...many(4, link))).toMatch('more than 8 certificates')
})

it('messages of both versions of TLS are read, without a certificate too', () => {
  const chain = chainOf(many(8, leaf))
  for (const isTls13 of [true, false]) {
    expect(chainFault(messageOf(chain, isTls13), isTls13)).toBeUndefined()
    expect(chainFault(messageOf([], isTls13), isTls13)).toBeUndefined()
    expect(chainFault(messageOf([...chain, ...chain], isTls13), isTls13)).toMatch('more than 8')
    expect(chainFault(messageOf(chain, isTls13), !isTls13)).toMatch(/malformed|not in DER/)
  }
})

it('RSA keys of up to 8,192 bits with exponents of up to 32 bits are verified, and no others', () => {
  const withRsa = (bits: number, exponent: string): string | undefined =>
    faultOf(leaf, ...many(7, { publicKey: rsaKey(bits, Buffer.from(exponent, 'hex')) }))
  expect(withRsa(8192, 'ffffffff')).toBeUndefined()
  expect(withRsa(2048, '010001')).toBeUndefined()
  for (const fault of [withRsa(8200, '03'), withRsa(3072, '0100000001'), withRsa(3072, '7f'.repeat(384))])
    expect(fault).toMatch(
      /another key than the server verifies: RSA keys of up to 8192 bits .*, and keys on P-256/,
    )
})

it('keys of other kinds are not verified, nor points and curves in the forms that cost more', () => {
  const compressed = Buffer.from(leaf.publicKey)
  const point = compressed.length - 65
  const shortened = der(
    0x30,
    compressed.subarray(2, point - 3),
    der(0x03, Buffer.of(0, 2), compressed.subarray(point + 1, point + 33)),
  )
  for (const publicKey of [
    explicitEcKey(),
    shortened,
    linkOf('secp256k1').publicKey,
    linkOf('brainpoolP512r1').publicKey,
    linkOf('sect571r1').publicKey,
    publicKeyOf(generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey),
    publicKeyOf(generateKeyPairSync('x25519').privateKey),
  ])
    expect(faultOf(leaf, { publicKey })).toMatch('another key than the server verifies')
})

it('keys for the padding PSS of RSA are verified as others of RSA', () => {
  const { privateKey } = generateKeyPairSync('rsa-pss', { modulusLength: 2048 })
  expect(faultOf(leaf, { publicKey: publicKeyOf(privateKey) })).toBeUndefined()
})

it('names and their constraints, which are compared with each other, are limited', () => {
  const link = (...extensions: readonly Buffer[]): ChainLink => ({ ...leaf, extensions })
  expect(faultOf(link(names(490)), link(names(490), constraints(50)), link(constraints(50)))).toBeUndefined()
  expect(faultOf(link(names(500)), link(names(500)))).toBe(
    'it has shown more than 1000 names in certificates, where an otherName counts as 100',
  )
  expect(faultOf(link(constraints(50)), link(constraints(51)))).toBe(
    'it has shown more than 100 constraints of names in certificates',
  )
})

it('an address of mail in UTF-8, with which each constraint takes long to compare, counts as a hundred names', () => {
  const mail = der(0xa0, identifier('2b06010505070809'), der(0xa0, der(0x0c, Buffer.from('a@b'))))
  const withMails = (count: number) => {
    const list = der(0x30, ...Array.from({ length: count }, () => mail))
    return faultOf({ ...leaf, extensions: [der(0x30, identifier('551d11'), der(0x04, list))] })
  }
  expect(withMails(9)).toBeUndefined()
  expect(withMails(10)).toMatch('more than 1000 names in certificates')
})

it('certificates in other encodings than DER, and what is none, are not verified', () => {
  const [certificate] = chainOf([leaf]) as [Buffer]
  const length = certificate.readUInt16BE(2)
  for (const damaged of [
    Buffer.alloc(0),
    certificate.subarray(0, 100),
    Buffer.concat([Buffer.of(0x30, 0x80), certificate.subarray(4), Buffer.of(0, 0)]),
    Buffer.concat([Buffer.of(0x30, 0x83, 0, length >> 8, length & 255), certificate.subarray(4)]),
    nameOf('a'),
  ])
    expect(chainFault(messageOf([damaged]), true)).toBe('its certificate is not in DER')
})

it('messages are judged however they are damaged', () => {
  const random = new SeededRandom(11)
  const message = messageOf(
    chainOf([{ ...leaf, extensions: [names(3), constraints(3)] }, { publicKey: rsaKey(2048, Buffer.of(3)) }]),
  )
  for (let i = 0; i < 20_000; i++) {
    const bytes = Uint8Array.from(message)
    for (let times = 0; times < 3; times++) bytes[random.below(bytes.length)] = random.below(256)
    const isCut = random.below(4) === 0
    const fault = chainFault(bytes.subarray(0, isCut ? random.below(bytes.length) : bytes.length), i % 8 > 0)
    expect(fault === undefined || fault.startsWith('it')).toBe(true)
  }
})
