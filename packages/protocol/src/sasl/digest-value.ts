import { md5 } from '../tables/md5.ts'
import { fromByteText, toByteText, type ByteText } from './directives.ts'

/** The parameters of an exchange that are part of the digest. */
export interface DigestParameters {
  readonly nonce: ByteText
  readonly cnonce: ByteText
  readonly digestUri: ByteText
  readonly authzid: ByteText | undefined
}

/** Use count of the nonce: always 1, since a server accepts one response per nonce. */
export const NONCE_COUNT = '00000001'

/** Computes the digest. `secret` is `user:realm:password`; `method` is `AUTHENTICATE` for the client and empty for the server. */
export function digestValue(
  secret: ByteText,
  method: 'AUTHENTICATE' | '',
  binding: DigestParameters,
): ByteText {
  const { nonce, cnonce, digestUri, authzid } = binding
  const session = `${hash(secret)}:${nonce}:${cnonce}${authzid === undefined ? '' : `:${authzid}`}`
  const keyed = [hexHash(session), nonce, NONCE_COUNT, cnonce, 'auth', hexHash(`${method}:${digestUri}`)]
  return hexHash(keyed.join(':'))
}

const hash = (text: ByteText): ByteText => toByteText(md5(fromByteText(text)))

function hexHash(text: ByteText): string {
  let hex = ''
  for (const byte of md5(fromByteText(text))) hex += byte.toString(16).padStart(2, '0')
  return hex
}

/** Compares two texts in a time that does not depend on where they differ. */
export function constantTimeEqual(a: ByteText, b: ByteText): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
