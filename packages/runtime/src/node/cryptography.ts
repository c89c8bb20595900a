import type { Cryptography } from '../cryptography.ts'
import { builtinModule } from './builtin-module.ts'

const CIPHER = 'aes-256-gcm'
const TAG_BYTES = 16

/** Cryptography of `node:crypto`. */
export const nodeCryptography: Cryptography = {
  sha256() {
    const hash = builtinModule('node:crypto').createHash('sha256')
    return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('hex') }
  },
  sha256Of: (bytes) => builtinModule('node:crypto').hash('sha256', bytes, 'hex'),
  seal(key, nonce, associated, plain) {
    const cipher = builtinModule('node:crypto').createCipheriv(CIPHER, key, nonce)
    cipher.setAAD(associated)
    const body = cipher.update(plain)
    cipher.final()
    const sealed = new Uint8Array(body.length + TAG_BYTES)
    sealed.set(body)
    sealed.set(cipher.getAuthTag(), body.length)
    return sealed
  },
  open(key, nonce, associated, sealed) {
    if (sealed.length < TAG_BYTES) return undefined
    const decipher = builtinModule('node:crypto').createDecipheriv(CIPHER, key, nonce)
    decipher.setAAD(associated)
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
    const plain = decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES))
    try {
      decipher.final()
    } catch {
      // The tag does not fit: the only error that `final` has in this mode.
      return undefined
    }
    return new Uint8Array(plain.buffer, plain.byteOffset, plain.byteLength)
  },
}
