import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { CertificateError } from '../tls.ts'

const BLOCK = /-----BEGIN X509 CRL-----[\s\S]*?-----END X509 CRL-----/g

/** Resolves to the certificate revocation lists in a file, in PEM. Rejects with a `CertificateError` when there are none. */
export async function readCrls(path: string): Promise<string> {
  const bytes = await read(path)
  const text = bytes[0] === 0x30 ? fromDer(bytes) : new TextDecoder().decode(bytes)
  const blocks = text.match(BLOCK)
  if (blocks === null)
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

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException
    throw new CertificateError(
      `Cannot read ${path} (${code}). Check that it is a file that the user of the server can read.`,
      path,
      { cause: error },
    )
  }
}

function fromDer(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN X509 CRL-----\n${lines.join('\n')}\n-----END X509 CRL-----\n`
}
