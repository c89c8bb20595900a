import { createHash, createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import {
  CertificateError,
  type CertificateStore,
  type CertificateStoreType,
  type OwnCertificate,
} from '../tls.ts'
import { pemBlocks } from './pem.ts'
import type { Pkcs12 } from './pkcs12.ts'
import { readSmallFile } from './small-file.ts'

/** The largest store that is read; one with all public authorities has a quarter of a megabyte. */
const MAX_STORE_BYTES = 4 << 20

/** A store whose files were read. */
export interface LoadedStore {
  readonly path: string
  readonly type: CertificateStoreType
  readonly bytes: Uint8Array
  readonly password: string
  /** The separate file with the private key, if there is one. */
  readonly keyFile?: { readonly path: string; readonly bytes: Uint8Array }
}

/** A private key and its certificate chain, in PEM. */
export interface KeyWithCertificates extends OwnCertificate {
  readonly key: string
  readonly certificates: string
}

const extensions: readonly (readonly [RegExp, CertificateStoreType])[] = [
  [/\.(pem|crt|cer|key)$/i, 'PEM'],
  [/\.(p12|pfx)$/i, 'PKCS12'],
  [/\.jks$/i, 'JKS'],
  [/\.bcfks$/i, 'BCFKS'],
]

/** Reads the files of a store. The format follows from its name, as in ZooKeeper, else from its first bytes. */
export async function loadStore(store: CertificateStore): Promise<LoadedStore> {
  const { path, type, password, passwordPath, keyPath } = store
  const bytes = await read(path)
  const secret =
    passwordPath === undefined
      ? (password ?? '')
      : new TextDecoder().decode(await read(passwordPath)).replace(/\r?\n$/, '')
  const keyFile = keyPath === undefined ? {} : { keyFile: { path: keyPath, bytes: await read(keyPath) } }
  return { path, type: type ?? typeOf(path, bytes), bytes, password: secret, ...keyFile }
}

/** Returns whether two loads of a store have the same contents. */
export function isSameStore(a: LoadedStore | undefined, b: LoadedStore | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  const keys = [a, b].map(({ keyFile }) => keyFile?.bytes ?? new Uint8Array(0))
  return (
    a.password === b.password &&
    Buffer.compare(a.bytes, b.bytes) === 0 &&
    Buffer.compare(keys[0]!, keys[1]!) === 0
  )
}

async function read(path: string): Promise<Uint8Array> {
  try {
    return await readSmallFile(path, MAX_STORE_BYTES)
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException
    const advice =
      code === 'ENOENT'
        ? 'There is no such file. Correct the path, or put the file there.'
        : code === 'EACCES'
          ? 'Let the user of the server read it.'
          : code === 'EFBIG'
            ? `Expected at most ${MAX_STORE_BYTES >> 20} MiB, got more. Name the file with the keys or certificates.`
            : 'Check that it is a file that the user of the server can read.'
    throw new CertificateError(`Cannot read ${path} (${code}). ${advice}`, path, { cause: error })
  }
}

function typeOf(path: string, bytes: Uint8Array): CertificateStoreType {
  const byName = extensions.find(([pattern]) => pattern.test(path))
  if (byName !== undefined) return byName[1]
  if (bytes[0] === 0xfe && bytes[1] === 0xed) return 'JKS'
  return bytes[0] === 0x30 ? 'PKCS12' : 'PEM'
}

/** Resolves to the private key of a store with its certificate chain. Rejects with a `CertificateError`. */
export async function keyWithCertificatesOf(store: LoadedStore): Promise<KeyWithCertificates> {
  if (store.keyFile !== undefined && store.type !== 'PEM')
    throw unusable(
      store,
      `it is a ${store.type} file, which holds its private key itself. Leave out the file with the key, or give certificates in PEM`,
    )
  const { key, certificates } = store.type === 'PEM' ? fromPem(store) : await fromPkcs12(store)
  const all = certificates.map((bytes) => parsed(bytes, store))
  const own = all.find((certificate) => certificate.checkPrivateKey(key))
  if (own === undefined)
    throw unusable(
      store,
      all.length === 0
        ? 'it holds no certificate. Add the certificate of the key, and those that sign it, to the file'
        : 'none of its certificates belongs to its private key. Put the key and its own certificate into it',
    )
  return {
    key: key.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificates: chain(own, all)
      .map((certificate) => certificate.toString())
      .join(''),
    validUntil: Date.parse(own.validTo),
    subjectHash: createHash('sha256').update(own.subject).digest('hex').slice(0, 16),
  }
}

/** Resolves to the certificates of a store, each in PEM. Rejects with a `CertificateError` when there are none. */
export async function trustedCertificatesOf(store: LoadedStore): Promise<string[]> {
  const certificates = store.type === 'PEM' ? pemCertificates(store) : (await openPkcs12(store)).certificates
  if (certificates.length === 0)
    throw unusable(store, 'it holds no certificate. Put the certificates of the authorities to trust into it')
  return certificates.map((bytes) => parsed(bytes, store).toString())
}

/** Returns a certificate, the one that signed it, and so on. */
function chain(own: X509Certificate, all: readonly X509Certificate[]): X509Certificate[] {
  const path = [own]
  for (let last = own; ;) {
    const signer = all.find((other) => !path.includes(other) && last.checkIssued(other))
    if (signer === undefined) return path
    path.push(signer)
    last = signer
  }
}

function parsed(bytes: Uint8Array | string, store: LoadedStore): X509Certificate {
  try {
    return new X509Certificate(bytes)
  } catch (error) {
    throw unusable(store, 'one of its certificates is damaged. Create it again', error)
  }
}

interface Parts {
  readonly key: KeyObject
  readonly certificates: readonly (Uint8Array | string)[]
}

const pemText = ({ bytes }: { readonly bytes: Uint8Array }): string => new TextDecoder().decode(bytes)

function pemCertificates(store: LoadedStore): string[] {
  return pemBlocks(pemText(store), /^(?:X509 |TRUSTED )?CERTIFICATE$/)
}

function fromPem(store: LoadedStore): Parts {
  const source = store.keyFile ?? store
  const [block] = pemBlocks(pemText(source), /^(?:[A-Z0-9]+ )?PRIVATE KEY$/)
  if (block === undefined)
    throw unusable(
      source,
      store.keyFile === undefined
        ? 'it holds no private key. A PEM key store is one file with the private key, its certificate and those that sign it'
        : 'it holds no private key in PEM. Give the file that begins with -----BEGIN PRIVATE KEY-----',
    )
  const input = { key: block, format: 'pem', passphrase: store.password } as const
  const key = decryptKey({ ...store, path: source.path }, input)
  return { key, certificates: pemCertificates(store) }
}

async function fromPkcs12(store: LoadedStore): Promise<Parts> {
  const { keys, certificates } = await openPkcs12(store)
  if (keys.length === 0)
    throw unusable(store, 'it holds no private key. Export it again together with the key')
  const input = {
    key: Buffer.from(keys[0]!),
    format: 'der',
    type: 'pkcs8',
    passphrase: store.password,
  } as const
  return { key: decryptKey(store, input), certificates }
}

function decryptKey(store: LoadedStore, input: Parameters<typeof createPrivateKey>[0]): KeyObject {
  try {
    return createPrivateKey(input)
  } catch (error) {
    const reason =
      store.password === ''
        ? 'its private key is locked or damaged. If it is locked, set its password'
        : 'its private key cannot be unlocked. Check the password'
    throw unusable(store, reason, error)
  }
}

async function openPkcs12(store: LoadedStore): Promise<Pkcs12> {
  if (store.type !== 'PKCS12') throw unsupportedFormat(store)
  // Loaded with the first store of this type: the library takes some megabytes.
  const { Pkcs12Error, readPkcs12 } = await import('./pkcs12.ts')
  try {
    return readPkcs12(store.bytes, store.password)
  } catch (error) {
    if (!(error instanceof Pkcs12Error)) throw error
    throw unusable(
      store,
      `${error.message}. Check the password, or export the file again with a current openssl or keytool`,
      error,
    )
  }
}

/** Returns the error for Java's own formats, with the command that converts the file. */
function unsupportedFormat({ path, type }: LoadedStore): CertificateError {
  const target = `${path.replace(/\.[^./\\]*$/, '')}.p12`
  const provider =
    type === 'BCFKS'
      ? ' -srcstoretype BCFKS -providerclass org.bouncycastle.jcajce.provider.BouncyCastleFipsProvider -providerpath bc-fips.jar'
      : ''
  const command = `keytool -importkeystore -srckeystore ${path}${provider} -destkeystore ${target} -deststoretype PKCS12`
  return new CertificateError(
    `${path} is a ${type} file, which only Java reads. Convert it with: ${command} and name the new file instead.`,
    path,
  )
}

function unusable({ path }: { readonly path: string }, reason: string, cause?: unknown): CertificateError {
  return new CertificateError(`${path} cannot be used: ${reason}.`, path, { cause })
}
