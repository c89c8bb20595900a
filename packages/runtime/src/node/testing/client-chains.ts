/** Makes chains of certificates that no authority would sign, in DER. */
import { createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'

/** Returns a value of DER. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents)
  if (body.length < 0x80) return Buffer.concat([Buffer.of(tag, body.length), body])
  const length = body.length.toString(16)
  const bytes = Buffer.from(length.padStart(length.length + (length.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.of(tag, 0x80 | bytes.length), bytes, body])
}

/** Returns the DER of an object identifier whose contents are given in hexadecimal. */
export const identifier = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts)

export const nameOf = (commonName: string): Buffer =>
  sequence(der(0x31, sequence(identifier('550403'), der(0x0c, Buffer.from(commonName)))))

/** The algorithm of a signature with SHA-256, by the kind of the key. */
const signatures: Readonly<Record<string, Buffer>> = {
  rsa: sequence(identifier('2a864886f70d01010b'), der(0x05)),
  ec: sequence(identifier('2a8648ce3d040302')),
  ed25519: sequence(identifier('2b6570')),
  ed448: sequence(identifier('2b6571')),
}

export interface ChainLink {
  /** The key of the owner in DER, as a SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array
  /** Signs the certificate below, and its own if it is the last one; a signature without it is noise. */
  readonly privateKey?: KeyObject | undefined
  /** Extensions in DER beside that of an authority. */
  readonly extensions?: readonly Uint8Array[] | undefined
}

/** Returns a new key on a curve, or of Ed25519 or Ed448. */
export function linkOf(kind: string): Required<Pick<ChainLink, 'publicKey' | 'privateKey'>> {
  const { privateKey } = kind.startsWith('ed')
    ? generateKeyPairSync(kind as 'ed25519')
    : generateKeyPairSync('ec', { namedCurve: kind })
  return { privateKey, publicKey: publicKeyOf(privateKey) }
}

/** Returns the public half of a key in DER. */
export const publicKeyOf = (key: KeyObject): Buffer =>
  createPublicKey(key as unknown as Parameters<typeof createPublicKey>[0]).export({
    type: 'spki',
    format: 'der',
  })

/** Returns an RSA key that has no private half, in DER. */
export function rsaKey(bits: number, exponent: Uint8Array): Buffer {
  const modulus = Buffer.alloc(bits / 8, 0xa5)
  const integer = (bytes: Uint8Array): Buffer =>
    der(0x02, bytes[0]! & 0x80 ? Buffer.of(0) : Buffer.alloc(0), bytes)
  const key = sequence(integer(modulus), integer(exponent))
  return sequence(sequence(identifier('2a864886f70d010101'), der(0x05)), der(0x03, Buffer.of(0), key))
}

/** Returns an EC key with the parameters of P-256 spelled out, in DER. */
export const explicitEcKey = (): Buffer =>
  generateKeyPairSync('ec', { namedCurve: 'prime256v1', paramEncoding: 'explicit' }).publicKey.export({
    type: 'spki',
    format: 'der',
  })

/** Returns certificates in DER of which each is signed by the next. The last one is self-signed. */
export function chainOf(links: readonly ChainLink[]): Buffer[] {
  return links.map(({ publicKey, extensions = [] }, index) => {
    const { privateKey } = links[index + 1] ?? links[index]!
    const algorithm = signatures[privateKey?.asymmetricKeyType ?? 'rsa']!
    const authority = sequence(identifier('551d13'), der(0x04, sequence(der(0x01, Buffer.of(0xff)))))
    const body = sequence(
      der(0xa0, der(0x02, Buffer.of(2))),
      der(0x02, Buffer.of(index + 1)),
      algorithm,
      nameOf(`link ${Math.min(index + 1, links.length - 1)}`),
      sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('450101000000Z'))),
      nameOf(`link ${index}`),
      publicKey,
      der(0xa3, sequence(...(index === 0 ? [] : [authority]), ...extensions)),
    )
    const signature =
      privateKey === undefined
        ? Buffer.alloc(384, 0x5a)
        : sign(privateKey.asymmetricKeyType!.startsWith('ed') ? null : 'sha256', body, privateKey)
    return sequence(body, algorithm, der(0x03, Buffer.of(0), signature))
  })
}

/** Returns certificates in PEM. */
export const pemOf = (certificates: readonly Uint8Array[]): string =>
  certificates
    .map(
      (certificate) =>
        `-----BEGIN CERTIFICATE-----\n${Buffer.from(certificate)
          .toString('base64')
          .match(/.{1,64}/g)!
          .join('\n')}\n-----END CERTIFICATE-----\n`,
    )
    .join('')
