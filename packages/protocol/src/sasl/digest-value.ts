import { md5 } from '../tables/md5.ts'
import { fromByteText, toByteText, type ByteText } from './directives.ts'

/** What a login is bound to; all of it goes into the digest. */
export interface DigestParameters {
  readonly nonce: ByteText
  readonly cnonce: ByteText
  readonly digestUri: ByteText
  readonly authzid: ByteText | undefined
}

/** How often the nonce is used: always once, for a server that has seen its answer forgets it. */
export const NONCE_COUNT = '00000001'

/** `secret` is `user:realm:password`. `method` is `AUTHENTICATE` for the client's proof and empty for the server's. */
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

/** Compares in a time that does not tell where two texts begin to differ. */
export function constantTimeEqual(a: ByteText, b: ByteText): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
