import { createSecureContext } from 'node:tls'
import { CertificateError } from '../tls.ts'
import { pemBlocks } from './pem.ts'
import { readSmallFile } from './small-file.ts'

/** The largest file of revocation lists; those of the largest authorities have some tens of megabytes. */
const MAX_CRL_BYTES = 64 << 20

/** Returns the certificate revocation lists in a file, in PEM. Throws a `CertificateError` when there are none. */
export function crlsOf(bytes: Uint8Array, path: string): string {
  const text = bytes[0] === 0x30 ? fromDer(bytes) : new TextDecoder().decode(bytes)
  const blocks = pemBlocks(text, /^X509 CRL$/)
  if (blocks.length === 0)
    throw new CertificateError(
      `${path} cannot be used: it holds no list of revoked certificates. It begins with -----BEGIN X509 CRL----- in PEM; name the file that the authority publishes.`,
      path,
    )
  const lists = `${blocks.join('\n')}\n`
  try {
    createSecureContext({ crl: lists })
  } catch (error) {
    throw new CertificateError(
      `${path} cannot be used: one of its lists of revoked certificates is damaged. Get it again from the authority.`,
      path,
      { cause: error },
    )
  }
  return lists
}

/** Reads the bytes of a file of lists. Rejects with a `CertificateError` when it cannot be read. */
export async function readCrlFile(path: string): Promise<Uint8Array> {
  try {
    return await readSmallFile(path, MAX_CRL_BYTES)
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException
    const advice =
      code === 'EFBIG'
        ? `Expected at most ${MAX_CRL_BYTES >> 20} MiB, got more`
        : 'Check that it is a file that the user of the server can read'
    throw new CertificateError(`Cannot read ${path} (${code}). ${advice}.`, path, { cause: error })
  }
}

function fromDer(bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN X509 CRL-----\n${lines.join('\n')}\n-----END X509 CRL-----\n`
}
